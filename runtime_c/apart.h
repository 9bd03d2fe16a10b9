/* A function that the firmware calls.  The self-test has to run it, not a copy of it inside itself. */
#if defined(__clang__)
#define PK_APART __attribute__((noinline))
#elif defined(__GNUC__)
#define PK_APART __attribute__((noinline, noclone))
#else
#define PK_APART
#endif
