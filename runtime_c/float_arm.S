@ What compilers call for float arithmetic on an ARMv6-M (Cortex-M0, M0+, M1) or ARMv7-M (Cortex-M3), with the bits of IEEE 754:
@ rounded to nearest, ties to even; subnormal numbers, infinities.  Every NaN is 0x7fc00000.
    .ifndef pykernel_float @ once, where the linker optimises several files as one
    .set pykernel_float, 1
    .macro pykernel_section name
    .syntax unified
    .pushsection .text.\name, "ax", %progbits
    .endm
    .macro pykernel_function name
    .p2align 1
    .weak \name
    .type \name, %function
    .thumb_func
\name:
    .endm
    .macro pykernel_normalise x, e, t @ shift x, which is not 0, until its bit 31 leads, and take the places off e
    .ifdef pykernel_thumb2
    clz \t, \x
    lsls \x, \t
    subs \e, \e, \t
    .else
    lsrs \t, \x, #16
    bne 91f
    lsls \x, \x, #16
    subs \e, #16
91: lsrs \t, \x, #24
    bne 92f
    lsls \x, \x, #8
    subs \e, #8
92: lsrs \t, \x, #28
    bne 93f
    lsls \x, \x, #4
    subs \e, #4
93: lsrs \t, \x, #30
    bne 94f
    lsls \x, \x, #2
    subs \e, #2
94: cmp \x, #0
    bmi 95f
    lsls \x, \x, #1
    subs \e, #1
95:
    .endif
    .endm

@ a * b.  24 bits are 16 high and 8 low ones, so each of four products has at most 32 bits.
    pykernel_section __aeabi_fmul
    pykernel_function __aeabi_fmul
    push {r4, r5, r6, r7, lr}
    lsls r2, r0, #1
    lsrs r2, r2, #24 @ a's exponent
    beq 20f
    lsls r3, r1, #1
    lsrs r3, r3, #24 @ b's exponent
    beq 21f
    cmp r2, #255
    beq 30f
    cmp r3, #255
    beq 30f
    adds r2, r2, r3
    .ifdef pykernel_thumb2
    mov r7, #0x80000000
    orr r3, r7, r0, lsl #8
1:  orr r4, r7, r1, lsl #8
    eors r0, r1
    umull r5, r3, r3, r4 @ both have their leading bit in front: bits 63 to 32 of the product, and the others
    lsrs r7, r5, #16
    lsrs r5, r5, #24
    cmp r3, #0
    .else
    movs r7, #128
    lsls r7, r7, #8
    lsls r3, r0, #9
    lsrs r3, r3, #17
    adds r3, r3, r7 @ a's high bits
    uxtb r5, r0 @ a's low bits
1:  lsls r4, r1, #9
    lsrs r4, r4, #17
    adds r4, r4, r7 @ b's high bits
    uxtb r6, r1 @ b's low bits
    eors r0, r1 @ bit 31: the sign
    movs r7, r5
    muls r7, r6
    muls r5, r4
    muls r6, r3
    adds r5, r5, r6
    lsrs r6, r7, #8
    adds r5, r5, r6
    lsrs r6, r5, #8
    muls r3, r4
    adds r3, r3, r6 @ bits 47 to 16 of the product; the lowest bytes of r5 and r7 have the others
    .endif
    bmi 4f
    subs r2, #128 @ bit 46 leads; r2: the exponent, less the one that the leading bit adds
    cmp r2, #253
    bhi 10f
    lsls r2, r2, #23
    lsrs r0, r0, #31
    lsls r0, r0, #31
    adds r0, r0, r2
    lsls r4, r3, #26
    beq 3f
2:  lsrs r3, r3, #7
    adcs r0, r3
    pop {r4, r5, r6, r7, pc}
3:  orrs r5, r7
    lsls r5, r5, #24
    bne 2b
    lsrs r3, r3, #7
    b 7f
4:  subs r2, #127 @ bit 47 leads
    cmp r2, #253
    bhi 11f
    lsls r2, r2, #23
    lsrs r0, r0, #31
    lsls r0, r0, #31
    adds r0, r0, r2
    lsls r4, r3, #25
    beq 6f
5:  lsrs r3, r3, #8
    adcs r0, r3
    pop {r4, r5, r6, r7, pc}
6:  orrs r5, r7
    lsls r5, r5, #24
    bne 5b
    lsrs r3, r3, #8
7:  bcc 8f
    lsrs r4, r3, #1 @ a tie: only an odd number is rounded up
8:  adcs r0, r3
    pop {r4, r5, r6, r7, pc}
10: movs r4, #7
    b 12f
11: movs r4, #8
12: lsrs r0, r0, #31
    cmp r2, #0
    bge 33f
    lsls r0, r0, #31 @ subnormal: r4 bits are too many
    subs r4, r4, r2
    orrs r5, r7
    lsls r5, r5, #24
    movs r6, #33
    subs r6, r6, r4
    movs r7, r3
    lsls r7, r6 @ what is below half of the last bit
    orrs r7, r5
    beq 13f
    lsrs r3, r4
    adcs r0, r3
    pop {r4, r5, r6, r7, pc}
13: lsrs r3, r4
    b 7b
20: lsls r2, r1, #1
    lsrs r2, r2, #24
    beq 32f @ the product of two subnormal numbers is 0
    b 22f
21: movs r4, r0 @ a is the subnormal one, or 0
    movs r0, r1
    movs r1, r4
22: cmp r2, #255
    beq 30f
    lsls r4, r0, #9
    beq 32f
    pykernel_normalise r4, r2, r3
    .ifdef pykernel_thumb2
    movs r3, r4
    mov r7, #0x80000000
    .else
    lsrs r3, r4, #16
    lsls r5, r4, #16
    lsrs r5, r5, #24
    movs r7, #128
    lsls r7, r7, #8
    .endif
    b 1b
30: lsls r2, r0, #1 @ an infinity or NaN
    lsls r3, r1, #1
    movs r4, #255
    lsls r4, r4, #24
    cmp r2, r4
    bhi 34f
    cmp r3, r4
    bhi 34f
    cmp r2, #0
    beq 34f
    cmp r3, #0
    beq 34f
    eors r0, r1
    lsrs r0, r0, #31
33: lsls r0, r0, #8
    adds r0, #255
    lsls r0, r0, #23
    pop {r4, r5, r6, r7, pc}
32: eors r0, r1
    lsrs r0, r0, #31
    lsls r0, r0, #31
    pop {r4, r5, r6, r7, pc}
34: asrs r4, r4, #1 @ NaN
    lsrs r0, r4, #1
    pop {r4, r5, r6, r7, pc}
    .size __aeabi_fmul, . - __aeabi_fmul
    .popsection


@ b - a, a - b and a + b.  A difference either loses at most one bit in front, or it is exact.
    pykernel_section __aeabi_fadd
    pykernel_function __aeabi_frsub
    movs r2, #1
    lsls r2, r2, #31
    eors r0, r2
    b 1f
    .size __aeabi_frsub, . - __aeabi_frsub
    pykernel_function __aeabi_fsub
    movs r2, #1
    lsls r2, r2, #31
    eors r1, r2
    .size __aeabi_fsub, . - __aeabi_fsub
    pykernel_function __aeabi_fadd
1:  push {r4, r5, r6, r7, lr}
    lsls r2, r0, #1
    lsls r3, r1, #1
    movs r5, r0
    eors r5, r1 @ below 0: the signs differ
    cmp r2, r3
    bhs 2f
    eors r0, r5 @ exchange them: a is not the smaller one
    eors r1, r5
    lsls r2, r0, #1
    lsls r3, r1, #1
2:  lsrs r6, r2, #24 @ a's exponent
    cmp r6, #255
    beq 30f
    lsrs r3, r3, #24 @ b's exponent
    beq 20f
    subs r3, r6, r3
    cmp r3, #25
    bhi 9f @ b is less than half of the last bit
    lsrs r2, r0, #23 @ a's sign and exponent
    movs r4, #128
    lsls r4, r4, #24
    lsls r0, r0, #8
    orrs r0, r4
    lsls r1, r1, #8
    orrs r1, r4
3:  movs r4, #32
    subs r4, r4, r3
    movs r7, r1
    lsls r7, r4 @ b's bits below the last one of r1
    lsrs r1, r3
    cmp r5, #0
    bmi 10f
    adds r0, r0, r1
    bcs 6f
4:  subs r2, #1
    lsls r2, r2, #23
    lsls r4, r0, #25
    beq 5f
    lsrs r0, r0, #8
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
5:  cmp r7, #0
    beq 12f
    lsrs r0, r0, #8
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
12: lsrs r0, r0, #8
    b 8f
6:  adds r2, #1
    lsls r2, r2, #23
    cmp r6, #254
    beq 31f
    lsls r4, r0, #24
    beq 7f
    lsrs r0, r0, #9
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
7:  cmp r7, #0
    bne 13f
    lsrs r0, r0, #9
8:  bcc 14f
    lsrs r4, r0, #1 @ a tie: only an odd number is rounded up
14: adcs r0, r2
9:  pop {r4, r5, r6, r7, pc}
13: lsrs r0, r0, #9
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
10: rsbs r7, r7, #0
    sbcs r0, r1
    bmi 4b
    lsls r4, r0, #1
    bpl 22f
    cmp r6, #1
    beq 16f
    subs r2, #2
    lsls r2, r2, #23
    lsls r4, r0, #26
    beq 15f
    lsrs r0, r0, #7
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
15: cmp r7, #0
    beq 17f
    lsrs r0, r0, #7
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
17: lsrs r0, r0, #7
    b 8b
16: movs r6, #0
    b 28f
20: subs r3, r6, #1 @ b is subnormal or 0
    bmi 21f
    cmp r3, #25
    bhi 9b
    lsrs r2, r0, #23
    movs r4, #128
    lsls r4, r4, #24
    lsls r0, r0, #8
    orrs r0, r4
    lsls r1, r1, #8
    b 3b
21: lsls r1, r1, #1 @ both are: whole numbers
    lsrs r1, r1, #1
    cmp r5, #0
    bmi 32f
    adds r0, r0, r1
    pop {r4, r5, r6, r7, pc}
32: subs r0, r0, r1
    lsls r1, r0, #1
    bne 9b
    movs r0, #0
    pop {r4, r5, r6, r7, pc}
31: movs r0, r2 @ an infinity
    pop {r4, r5, r6, r7, pc}
30: movs r4, #255 @ a is an infinity or NaN
    lsls r4, r4, #24
    cmp r2, r4
    bhi 33f
    cmp r3, r4
    bne 9b
    cmp r5, #0
    bpl 9b
33: asrs r4, r4, #1 @ NaN
    lsrs r0, r4, #1
    pop {r4, r5, r6, r7, pc}
22: beq 9b
    pykernel_normalise r0, r6, r4 @ exact
    lsrs r2, r2, #8
    subs r6, #1
    bmi 29f
    lsls r2, r2, #8
    adds r2, r2, r6
    lsls r2, r2, #23
    lsrs r0, r0, #8
    adds r0, r0, r2
    pop {r4, r5, r6, r7, pc}
28: lsrs r2, r2, #8
29: movs r4, #8 @ subnormal
    subs r4, r4, r6
    lsrs r0, r4
    lsls r2, r2, #31
    adds r0, r0, r2
    pop {r4, r5, r6, r7, pc}
    .size __aeabi_fadd, . - __aeabi_fadd
    .popsection

@ a / b.  Newton's method gives 16 bits of 2^39 / b, never too large and by less than 2^-13 too small, and they give
@ 13 bits of the quotient, then 12 more, in all at most 2 too small.  The remainders are exact.
    pykernel_section __aeabi_fdiv
    pykernel_function __aeabi_fdiv
    push {r4, r5, r6, r7, lr}
    movs r4, r0
    eors r4, r1
    lsrs r4, r4, #31
    mov r12, r4 @ the sign
    lsls r2, r0, #1
    lsrs r2, r2, #24
    beq 20f
    cmp r2, #255
    beq 20f
    lsls r3, r1, #1
    lsrs r3, r3, #24
    beq 20f
    cmp r3, #255
    beq 20f
    subs r2, r2, r3
    movs r4, #128
    lsls r4, r4, #16
    lsls r0, r0, #9
    lsrs r0, r0, #9
    orrs r0, r4
    lsls r1, r1, #9
    lsrs r1, r1, #9
    orrs r1, r4
1:  adds r2, #126 @ the exponent, less the one that the leading bit adds
    cmp r0, r1
    bhs 2f
    lsls r0, r0, #1
    subs r2, #1
2:  lsrs r4, r1, #8
    adds r4, #1 @ b's high bits, rounded up
    lsrs r5, r4, #4
    subs r5, r4, r5
    movs r3, #181
    lsls r3, r3, #9
    subs r3, r3, r5 @ the first estimate is linear
    movs r5, r3
    muls r5, r4
    rsbs r5, r5, #0
    lsrs r5, r5, #16
    muls r3, r5
    lsrs r3, r3, #15
    muls r4, r3
    rsbs r4, r4, #0
    lsrs r4, r4, #16
    muls r3, r4
    lsrs r3, r3, #15 @ the third
    lsrs r4, r0, #9
    muls r4, r3
    lsrs r4, r4, #18
    lsls r0, r0, #12
    movs r5, r4
    muls r5, r1
    subs r0, r0, r5
    lsrs r5, r0, #10
    muls r5, r3
    lsrs r5, r5, #17
    lsls r4, r4, #12
    adds r4, r4, r5
    lsls r0, r0, #12
    muls r5, r1
    subs r0, r0, r5
    cmp r0, r1
    blo 3f
    subs r0, r0, r1
    adds r4, #1
    cmp r0, r1
    blo 3f
    subs r0, r0, r1
    adds r4, #1
3:  mov r5, r12 @ r4: 25 bits of the quotient; r0: the remainder
    cmp r2, #253
    bhi 10f
    lsls r5, r5, #31
    lsls r2, r2, #23
    adds r2, r2, r5
    lsrs r0, r4, #1 @ there are no ties
    adcs r0, r2
    pop {r4, r5, r6, r7, pc}
10: cmp r2, #0
    bge 32f
    lsls r5, r5, #31 @ subnormal
    movs r1, #1
    subs r1, r1, r2
    movs r3, #33
    subs r3, r3, r1
    movs r6, r4
    lsls r6, r3
    orrs r6, r0
    beq 11f
    lsrs r4, r1
    b 12f
11: lsrs r4, r1
    bcc 12f
    lsrs r6, r4, #1 @ a tie: only an odd number is rounded up
12: adcs r4, r5
    movs r0, r4
    pop {r4, r5, r6, r7, pc}
20: lsls r0, r0, #1 @ 0, subnormal, infinite or NaN
    lsls r1, r1, #1
    movs r4, #255
    lsls r4, r4, #24
    cmp r1, r4
    bhi 34f
    beq 30f
    cmp r0, r4
    bhi 34f
    beq 31f
    cmp r1, #0
    beq 33f
    cmp r0, #0
    beq 35f
    bl 40f
    movs r2, r7
    movs r3, r6
    movs r0, r1
    bl 40f
    subs r2, r2, r7
    movs r1, r6
    movs r0, r3
    b 1b
30: cmp r0, r4 @ by an infinity
    bhs 34f
35: mov r0, r12
    lsls r0, r0, #31
    pop {r4, r5, r6, r7, pc}
33: cmp r0, #0 @ by 0
    beq 34f
31: mov r5, r12 @ an infinity
32: lsls r5, r5, #8
    adds r5, #255
    lsls r0, r5, #23
    pop {r4, r5, r6, r7, pc}
34: asrs r4, r4, #1 @ NaN
    lsrs r0, r4, #1
    pop {r4, r5, r6, r7, pc}
40: lsrs r7, r0, #24 @ of twice the number r0: its 24 bits to r6, its exponent to r7
    beq 41f
    lsls r6, r0, #8
    lsrs r6, r6, #9
    movs r5, #128
    lsls r5, r5, #16
    orrs r6, r5
    bx lr
41: movs r7, #1
    lsls r6, r0, #7
    pykernel_normalise r6, r7, r5
    lsrs r6, r6, #8
    bx lr
    .size __aeabi_fdiv, . - __aeabi_fdiv
    .popsection

@ Whether a number is NaN
    pykernel_section __aeabi_fcmpun
    pykernel_function __aeabi_fcmpun
    movs r3, #1
    lsls r3, r3, #24 @ 2^32, less twice an infinity
    lsls r2, r0, #1
    cmn r2, r3
    bhi 1f
    lsls r2, r1, #1
    cmn r2, r3
    bhi 1f
    movs r0, #0
    bx lr
1:  movs r0, #1
    bx lr
    .size __aeabi_fcmpun, . - __aeabi_fcmpun
    .popsection

@ Whether two numbers are equal
    pykernel_section __aeabi_fcmpeq
    pykernel_function __aeabi_fcmpeq
    cmp r0, r1
    beq 1f
    orrs r0, r1
    lsls r0, r0, #1
    beq 2f @ 0 and -0
    movs r0, #0
    bx lr
1:  lsls r0, r0, #1
    movs r1, #255
    lsls r1, r1, #24
    cmp r0, r1
    bhi 3f
2:  movs r0, #1
    bx lr
3:  movs r0, #0
    bx lr
    .size __aeabi_fcmpeq, . - __aeabi_fcmpeq
    .popsection

@ Whether a number is less than another, and so on.  Numbers that are not negative have the order of integers; if one is
@ negative, they have the reverse order of integers without a sign.
    .macro pykernel_compare name less more strict
    pykernel_section \name
    pykernel_function \name
    movs r3, #1
    lsls r3, r3, #24
    lsls r2, r0, #1
    cmn r2, r3
    bhi 3f
    lsls r2, r1, #1
    cmn r2, r3
    bhi 3f
    movs r2, r0
    orrs r2, r1
    bmi 1f
    cmp \less, \more
    b 2f
1:  lsls r2, r2, #1
    beq 2f @ 0 and -0: the carry is set, as where they are equal
    cmp \more, \less
    .if \strict
2:  sbcs r0, r0
    rsbs r0, r0, #0
    .else
2:  movs r0, #0
    adcs r0, r0
    .endif
    bx lr
3:  movs r0, #0
    bx lr
    .size \name, . - \name
    .popsection
    .endm
    pykernel_compare __aeabi_fcmplt, r0, r1, 1
    pykernel_compare __aeabi_fcmpge, r0, r1, 0
    pykernel_compare __aeabi_fcmpgt, r1, r0, 1
    pykernel_compare __aeabi_fcmple, r1, r0, 0

@ An integer as a float
    pykernel_section __aeabi_ui2f
    pykernel_function __aeabi_ui2f
    movs r3, #0
    b 1f
    .size __aeabi_ui2f, . - __aeabi_ui2f
    pykernel_function __aeabi_i2f
    asrs r3, r0, #31
    eors r0, r3
    subs r0, r0, r3
    lsls r3, r3, #31
1:  cmp r0, #0
    beq 8f
    movs r2, #157 @ the exponent of bit 31, less the one that it adds
    pykernel_normalise r0, r2, r1
    lsls r2, r2, #23
    adds r3, r3, r2
    lsls r1, r0, #25
    beq 9f
    lsrs r0, r0, #8
7:  adcs r0, r3
8:  bx lr
9:  lsrs r0, r0, #8
    bcc 7b
    lsrs r1, r0, #1 @ a tie: only an odd number is rounded up
    b 7b
    .size __aeabi_i2f, . - __aeabi_i2f
    .popsection

@ A float as an integer, towards 0; what is too large gives the largest, or the least
    pykernel_section __aeabi_f2iz
    pykernel_function __aeabi_f2iz
    lsls r2, r0, #1
    lsrs r2, r2, #24
    movs r3, #158
    subs r3, r3, r2
    bls 1f
    movs r2, #128
    lsls r2, r2, #24
    lsls r1, r0, #8
    orrs r1, r2
    lsrs r1, r3
    asrs r0, r0, #31
    eors r1, r0
    subs r0, r1, r0
    bx lr
1:  asrs r0, r0, #31
    movs r1, #1
    lsls r1, r1, #31
    subs r1, #1
    eors r0, r1
    bx lr
    .size __aeabi_f2iz, . - __aeabi_f2iz
    .popsection

    pykernel_section __aeabi_f2uiz
    pykernel_function __aeabi_f2uiz
    asrs r1, r0, #31
    bmi 2f
    lsrs r2, r0, #23
    movs r3, #158
    subs r3, r3, r2
    bcc 1f
    movs r2, #128
    lsls r2, r2, #24
    lsls r0, r0, #8
    orrs r0, r2
    lsrs r0, r3
    bx lr
1:  movs r1, #0
2:  mvns r0, r1
    bx lr
    .size __aeabi_f2uiz, . - __aeabi_f2uiz
    .popsection
    .endif
