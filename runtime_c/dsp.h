/* Whether the CPU multiplies two pairs of 16-bit numbers at once (Cortex-M4, M7, M33, M55), and the compiler says so. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP) && (__ARM_FEATURE_DSP == 1)
#define PK_DSP 1
#include <arm_acle.h>
#else
#define PK_DSP 0
#endif
