"""Words that must not be names of models.  The words in ``C_KEYWORDS`` must not be names in kernels, either."""

from __future__ import annotations

C_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm atomic_cancel auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reflexpr register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch synchronized template this thread_local throw true try typedef typeid typename typeof union unsigned
    using virtual void volatile wchar_t while xor xor_eq main errno assert defined far near interrupt""".split()
)
"""Keywords of C and C++, and names that their libraries or common headers define."""

SYSTEM_HEADERS = frozenset(
    """acc_prof adc_cali_schemes adcintrin adxintrin aio aliases alloca altivec ammintrin amo amxavx512intrin amxbf16intrin
    amxcomplexintrin amxfp16intrin amxfp8intrin amxint8intrin amxintrin amxmovrsintrin amxtf32intrin amxtileintrin
    andes_vector ar arduino argp argz arm64intr arm_acle arm_bf16 arm_cde arm_cmse arm_fp16 arm_mve arm_neon
    arm_neon_sve_bridge arm_sme arm_sve arm_vector_types armintr asm_inline asrc_adapter assert atomic audio
    avx10_2_512bf16intrin avx10_2_512convertintrin avx10_2_512minmaxintrin avx10_2_512niintrin avx10_2_512satcvtdsintrin
    avx10_2_512satcvtintrin avx10_2bf16intrin avx10_2convertintrin avx10_2copyintrin avx10_2minmaxintrin avx10_2niintrin
    avx10_2satcvtdsintrin avx10_2satcvtintrin avx2intrin avx5124fmapsintrin avx5124vnniwintrin avx512bf16intrin
    avx512bf16vlintrin avx512bitalgintrin avx512bwintrin avx512cdintrin avx512dqintrin avx512erintrin avx512fintrin
    avx512fp16intrin avx512fp16vlintrin avx512ifmaintrin avx512ifmavlintrin avx512pfintrin avx512vbmi2intrin
    avx512vbmi2vlintrin avx512vbmiintrin avx512vbmivlintrin avx512vlbf16intrin avx512vlbitalgintrin avx512vlbwintrin
    avx512vlcdintrin avx512vldqintrin avx512vlfp16intrin avx512vlintrin avx512vlvbmi2intrin avx512vlvnniintrin
    avx512vlvp2intersectintrin avx512vnniintrin avx512vnnivlintrin avx512vp2intersectintrin avx512vp2intersectvlintrin
    avx512vpopcntdqintrin avx512vpopcntdqvlintrin avxifmaintrin avxintrin avxneconvertintrin avxvnniint16intrin
    avxvnniint8intrin avxvnniintrin backtrace bignum_impl binary ble_mbuf ble_msys ble_priv ble_user_cfg bmi2intrin
    bmiintrin bmmintrin boot bootloader_clock bootloader_common bootloader_flash bootloader_flash_config
    bootloader_flash_override bootloader_flash_priv bootloader_mem bootloader_memory_utils bootloader_random bootloader_util
    bootloader_utility_tee bredr_priv bredr_user_cfg bt_osi_mem btbb_retention_reg btc_ble_mesh_agg_model btc_ble_mesh_ble
    btc_ble_mesh_brc_model btc_ble_mesh_config_model btc_ble_mesh_df_model btc_ble_mesh_dfu_model btc_ble_mesh_dfu_slot
    btc_ble_mesh_generic_model btc_ble_mesh_health_model btc_ble_mesh_lcd_model btc_ble_mesh_lighting_model
    btc_ble_mesh_mbt_model btc_ble_mesh_model_common btc_ble_mesh_odp_model btc_ble_mesh_prb_model btc_ble_mesh_prov
    btc_ble_mesh_rpr_model btc_ble_mesh_sar_model btc_ble_mesh_sensor_model btc_ble_mesh_srpl_model
    btc_ble_mesh_time_scene_model btdm_coex btdm_endian btdm_external btdm_log btdm_lp btdm_mempool btdm_osal
    btdm_osal_freertos btdm_user_cfg builtin_stack_guard builtins byteswap cet cetintrin cldemoteintrin clflushoptintrin
    client clk_ctrl_os clwbintrin clzerointrin cmpccxaddintrin complex core_pmp counters cpio cpuid crc32intrin
    critical_section_monitor croutine ctype deprecated_definitions devctl dirent dlfcn dport_access ecc_impl eeprom elf
    emmintrin endian enqcmdintrin entropy_poll envlock envz eri err errno error esp_aes_dma_priv esp_aes_internal
    esp_app_desc esp_app_format esp_app_trace esp_app_trace_config esp_app_trace_port esp_app_trace_types esp_app_trace_util
    esp_assert esp_async_color_convert esp_async_crc esp_async_memcpy esp_attestation esp_attr esp_bit_defs
    esp_ble_audio_aics_api esp_ble_audio_bap_api esp_ble_audio_cap_api esp_ble_audio_ccp_api esp_ble_audio_codec_api
    esp_ble_audio_common_api esp_ble_audio_csip_api esp_ble_audio_defs esp_ble_audio_gmap_api esp_ble_audio_has_api
    esp_ble_audio_lc3_defs esp_ble_audio_mcc_api esp_ble_audio_mcs_defs esp_ble_audio_media_proxy_api esp_ble_audio_micp_api
    esp_ble_audio_pacs_api esp_ble_audio_pbp_api esp_ble_audio_tbs_api esp_ble_audio_tmap_api esp_ble_audio_vcp_api
    esp_ble_audio_vocs_api esp_ble_iso_common_api esp_ble_mesh_agg_model_api esp_ble_mesh_ble_api
    esp_ble_mesh_blob_model_api esp_ble_mesh_brc_model_api esp_ble_mesh_cm_data_api esp_ble_mesh_common_api
    esp_ble_mesh_config_model_api esp_ble_mesh_df_model_api esp_ble_mesh_dfu_model_api esp_ble_mesh_dfu_slot_api
    esp_ble_mesh_generic_model_api esp_ble_mesh_health_model_api esp_ble_mesh_lcd_model_api esp_ble_mesh_lighting_model_api
    esp_ble_mesh_low_power_api esp_ble_mesh_mbt_model_api esp_ble_mesh_networking_api esp_ble_mesh_odp_model_api
    esp_ble_mesh_prb_model_api esp_ble_mesh_provisioning_api esp_ble_mesh_proxy_api esp_ble_mesh_rpr_model_api
    esp_ble_mesh_sar_model_api esp_ble_mesh_sensor_model_api esp_ble_mesh_srpl_model_api esp_blockdev esp_bootloader_desc
    esp_brownout esp_bt esp_bt_vs esp_cache esp_cam_ctlr esp_cam_ctlr_csi esp_cam_ctlr_dvp esp_cam_ctlr_isp_dvp
    esp_cam_ctlr_types esp_check esp_chip_info esp_clk_internal esp_clk_tree esp_clock_output esp_coex_i154 esp_coexist
    esp_compiler esp_core_dump esp_cpu esp_cpu_utils esp_crc esp_crt_bundle esp_crypto_dma esp_crypto_lock
    esp_crypto_periph_clk esp_crypto_shared_gdma esp_dbg_stubs esp_debug_helpers esp_dma_utils esp_dpa_protection esp_dpp
    esp_ds esp_ds_err esp_eap_client esp_eap_client_remote_api esp_efuse esp_efuse_chip esp_efuse_rtc_calib
    esp_efuse_rtc_table esp_efuse_table esp_err esp_err_msg esp_eth esp_eth_clock esp_eth_com esp_eth_driver esp_eth_mac
    esp_eth_mac_esp esp_eth_mac_openeth esp_eth_mac_spi esp_eth_netif_glue esp_eth_phy esp_eth_phy_802_3 esp_eth_spec
    esp_etm esp_event esp_event_base esp_event_loop esp_expression_with_stack esp_fault esp_flash esp_flash_data_types
    esp_flash_encrypt esp_flash_err esp_flash_partitions esp_flash_spi_init esp_freertos_hooks esp_gdbstub esp_gdbstub_arch
    esp_gdbstub_memory_regions esp_hci_driver esp_hci_internal esp_hci_transport esp_heap_caps esp_heap_caps_init
    esp_heap_task_info esp_heap_trace esp_hid_common esp_hidd esp_hidd_gatts esp_hidd_transport esp_hidh esp_hidh_bluedroid
    esp_hidh_gattc esp_hidh_nimble esp_hidh_transport esp_hmac esp_hmac_pbkdf2 esp_http_client esp_http_server esp_https_ota
    esp_https_server esp_hw_log esp_idf_version esp_ieee802154 esp_ieee802154_types esp_image_format esp_intr_alloc
    esp_intr_types esp_ipc esp_ipc_isr esp_kasan esp_key_config esp_key_mgr esp_lcd_io_i2c esp_lcd_io_i80 esp_lcd_io_parl
    esp_lcd_io_spi esp_lcd_mipi_dsi esp_lcd_panel_commands esp_lcd_panel_dev esp_lcd_panel_io esp_lcd_panel_ops
    esp_lcd_panel_rgb esp_lcd_panel_ssd1306 esp_lcd_panel_st7789 esp_lcd_panel_vendor esp_lcd_types esp_ldo_regulator
    esp_linux_helper esp_local_ctrl esp_log esp_log_args esp_log_attr esp_log_buffer esp_log_color esp_log_config
    esp_log_format esp_log_level esp_log_timestamp esp_log_write esp_mac esp_macros esp_mbo esp_mem esp_memory_utils
    esp_memprot esp_memprot_err esp_memprot_types esp_mesh esp_mesh_internal esp_mmu_map esp_nan esp_netif esp_netif_br_glue
    esp_netif_defaults esp_netif_ip_addr esp_netif_net_stack esp_netif_ppp esp_netif_sntp esp_netif_types esp_now
    esp_openthread esp_openthread_border_router esp_openthread_cli esp_openthread_dns64 esp_openthread_lock
    esp_openthread_meshcop_mdns esp_openthread_netif_glue esp_openthread_spinel esp_openthread_transport
    esp_openthread_types esp_ota_ops esp_partition esp_phy esp_phy_cert_test esp_phy_init esp_pm esp_psa_its
    esp_psa_key_file esp_psram esp_pthread esp_radio_spinel esp_radio_spinel_platform esp_random esp_riscv_trace esp_roaming
    esp_rom_crc esp_rom_efuse esp_rom_gpio esp_rom_lldesc esp_rom_md5 esp_rom_regi2c esp_rom_serial_output esp_rom_spiflash
    esp_rom_spiflash_defs esp_rom_sys esp_rom_uart esp_rom_usb_serial esp_rrm esp_rtc_time esp_secure_boot esp_sha_dma_priv
    esp_sha_internal esp_sleep esp_smartconfig esp_spi_flash_counters esp_spiffs esp_stdio esp_stdio_cli_config
    esp_stdio_linux esp_supplicant_utils esp_system esp_system_console esp_systick_etm esp_task esp_task_wdt esp_tee
    esp_tee_aes_intr esp_tee_apm_intr esp_tee_brownout esp_tee_flash esp_tee_intr esp_tee_intr_defs esp_tee_memory_utils
    esp_tee_ota_ops esp_tee_ota_utils esp_tee_sec_storage esp_timer esp_trace esp_trace_freertos esp_trace_function_trace
    esp_trace_port_encoder esp_trace_port_transport esp_trace_registry esp_trace_types esp_trace_util esp_transport
    esp_transport_socks_proxy esp_transport_ssl esp_transport_tcp esp_transport_ws esp_twai esp_twai_onchip esp_twai_types
    esp_types esp_vbat esp_vfs esp_vfs_cdcacm esp_vfs_common esp_vfs_dev esp_vfs_eventfd esp_vfs_l2tap esp_vfs_null
    esp_vfs_ops esp_vfs_semihost esp_wake_stub esp_wifi esp_wifi_ap_get_sta_list esp_wifi_crypto_types esp_wifi_default
    esp_wifi_he esp_wifi_he_types esp_wifi_netif esp_wifi_remote esp_wifi_remote_api esp_wifi_remote_version esp_wifi_types
    esp_wifi_types_generic esp_wnm esp_wpa esp_wps esp_xt_wdt eth_phy_802_3_regs event_groups execinfo f16cintrin fastmath
    fcntl features fenv flash_qio_mode float fma4intrin fmaintrin fmtmsg fnmatch freertos freertos_sdk_config
    freertosconfig_arch fstab fts ftw fxsrintrin gconv gcov gen_offset getopt gfniintrin glob grp gshadow hardwareserial
    hardwareserial_private heap_memory_layout hexagon_circ_brev_intrinsics hexagon_protos hexagon_types hid hresetintrin
    htmintrin htmxlintrin http_auth http_header http_utils hvx_hexagon_protos ia32intrin iconv ieeefp ifaddrs immintrin
    intrin intrin0 inttypes inttypes_ext invpcidintrin ipaddress ipi iso646 kernel_arch kernel_arch_data kernel_arch_func
    kernel_arch_interface kernel_arch_thread kernel_event_logger_arch kernel_internal kernel_offsets kernel_structs
    kernel_tls keylockerintrin ksched kspinlock kswap kthread langinfo larchintrin lastlog lasxintrin libgen libintl
    libunwind limits link list locale lp_core_etm lp_core_i2c lp_core_mailbox lp_core_spi lp_core_uart lsxintrin
    lwip_default_hooks lwipopts lwpintrin lzcntintrin malloc math mcheck mem_api memory message_buffer metairq miniz mm3dnow
    mm_malloc mmintrin mmu mntent monetary movdirintrin movrs_avx10_2_512intrin movrs_avx10_2intrin movrsintrin
    mpu_prototypes mpu_syscall_numbers mpu_wrappers mqueue msa multi_heap mwaitintrin mwaitxintrin nano_internal
    nano_private nanok ndbm netdb new newlib newlibish nl_types nmmintrin nss nvs nvs_bootloader nvs_flash nvs_handle
    nvs_sec_provider obj_core_init obstack offsets_short offsets_short_arch omp openacc os paths pconfigintrin perfmon
    phy_init_data phy_init_deps picolibc picotls pins_arduino pkuintrin pluggableusb pm_s2ram_struct pmmintrin pmp poll
    popcntintrin port_systick portable portbenchmark portmacro posix_features posix_limits posix_sched posix_signal
    posix_stdlib posix_string posix_time posix_types prfchiintrin prfchwintrin print printable printf priority_q
    proc_service profiler_arch projdefs psa_crypto_driver_esp_aes psa_crypto_driver_esp_aes_gcm psa_crypto_driver_esp_cmac
    psa_crypto_driver_esp_ecdsa psa_crypto_driver_esp_md5 psa_crypto_driver_esp_rsa_ds psa_crypto_driver_esp_sha
    psa_crypto_driver_esp_sha1 psa_crypto_driver_esp_sha256 psa_crypto_driver_esp_sha512 pthread pthread_key ptrauth
    ptwriteintrin pty pwd quadmath quadmath_weak queue raointintrin rdpruintrin rdseedintrin re_comp reent regdef regex
    regexp resolv riscv_bitmanip riscv_corev_alu riscv_crypto riscv_mips riscv_mmu riscv_nds riscv_ntlh riscv_vector
    rom_patch_multi_heap rom_patch_tlsf rp2040_config rtc_wdt rtmintrin run_q rv_decode rv_smp_defs s390intrin sched
    scheduler sd_protocol_defs sd_protocol_types sd_pwr_ctrl sd_pwr_ctrl_by_on_chip_ldo sd_pwr_ctrl_interface sdmmc_cmd
    search semaphore semihost semphr serializeintrin server setjmp sgtty sgxintrin sha512intrin shadow shaintrin
    sifive_vector signal sm3intrin sm4evexintrin sm4intrin smartconfig_ack smmintrin smp_boot sockets_ext softwareserial
    spawn spi spi_flash_mmap spiffs_config spinlock spirvintrin stab stack_macros stackmacros start_task_arch stdalign
    stdarg stdatomic stdbool stdckdint stdcountof stddef stddefer stdfix stdint stdio stdio_ext stdlib stdnoreturn stream
    stream_buffer string strings stropts supplicant_opt sys_malloc syscall syscall_handler sysexits syslimits syslog tar
    task tbmintrin termio termios tgmath thread_db threads time time_calls timeout_priv timeout_q timers timeslicing
    tmmintrin tracing_arch tsxldtrkintrin ttyent uchar ucontext udp uintrintrin ulimit ulp_adc ulp_common ulp_common_defs
    ulp_fsm_common ulp_lp_core ulp_lp_core_cpu_freq_shared ulp_lp_core_gpio ulp_lp_core_i2c ulp_lp_core_interrupts
    ulp_lp_core_lp_adc_shared ulp_lp_core_lp_timer_shared ulp_lp_core_lp_uart_shared ulp_lp_core_lp_vad_shared
    ulp_lp_core_mailbox ulp_lp_core_mailbox_impl_shared ulp_lp_core_memory_shared ulp_lp_core_pmp ulp_lp_core_print
    ulp_lp_core_spi ulp_lp_core_touch ulp_lp_core_uart ulp_lp_core_utils ulp_riscv ulp_riscv_adc ulp_riscv_adc_ulp_core
    ulp_riscv_cpu_freq_shared ulp_riscv_gpio ulp_riscv_i2c ulp_riscv_i2c_ulp_core ulp_riscv_interrupt
    ulp_riscv_interrupt_ops ulp_riscv_lock ulp_riscv_lock_shared ulp_riscv_lock_ulp_core ulp_riscv_print
    ulp_riscv_register_ops ulp_riscv_touch_ulp_core ulp_riscv_uart_ulp_core ulp_riscv_utils unctrl unistd unity_config
    unity_fixture_extras unity_test_runner unity_test_utils unity_test_utils_cache unity_test_utils_memory unwind usage
    usbapi usbcore usbdesc usermsrintrin utime utmp utmpx vadefs vaesintrin values varargs vecintrin velintrin
    velintrin_approx velintrin_gen vpclmulqdqintrin wait wait_q waitpkgintrin wasm_simd128 wbnoinvdintrin wchar wcharacter
    wctype wear_levelling wire wiring_private wmmintrin wordexp wstring x86gprintrin x86intrin xmmintrin xopintrin
    xsavecintrin xsaveintrin xsaveoptintrin xsavesintrin xt_asm_utils xt_instr_macros xt_trax xt_utils xtensa_api
    xtensa_config xtensa_context xtensa_perfmon_access xtensa_perfmon_apis xtensa_perfmon_masks xtensa_rtos xtensa_timer
    xtestintrin yvals_core""".split()
)
"""Names of headers of the systems in which generated code is built, printed by ``tests/support/header_names.py``."""
