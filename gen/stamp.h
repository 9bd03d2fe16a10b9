{# A model's files that do not belong together must not build: each has a known answer, sizes or numbers for the others. -#}
#if !defined({{ macro }}_STAMP) || ({{ macro }}_STAMP != {{ stamp }})
#error "{{ name }}.h and this file do not belong together: generate the project again"
#endif
