{# Where a file's floats are computed, if the CPU has no instructions for them. -#}
{%- if real == "float" %}

#if defined(__GNUC__) && (defined(__ARM_ARCH_6M__) || (defined(__ARM_ARCH_7M__) && !defined(__ARM_FP))) && !defined({{ macro }}_LIBRARY_FLOAT)
#include "{{ name }}_float.h"
#endif
{%- endif %}