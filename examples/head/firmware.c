/* A head behind a network of another runtime, such as TensorFlow Lite Micro or CMSIS-NN.
 *
 * embed() stands for that runtime: it writes the numbers of the layer before the last.  What follows is bit-true. */
#include "last.h"

extern void embed(const uint8_t image[64], float features[LAST_DIM]);

static last_t head;

/* Once, at power-on.  Returns 0, or a status below 0 if this build does not compute what the PC computed. */
int32_t begin(void)
{
    last_init(&head);
    return last_selftest(&head);
}

/* The class of an image, or a status below 0. */
int32_t recognise(const uint8_t image[64])
{
    float features[LAST_DIM];
    int32_t label[1];
    int32_t status;
    embed(image, features);
    status = last_classify(&head, features, label);
    return status < 0 ? status : label[0];
}

/* Somebody said what the image shows.  Returns 0 or more, or a status below 0; then nothing was learned. */
int32_t correct(const uint8_t image[64], int32_t label)
{
    float features[LAST_DIM];
    embed(image, features);
    return last_update(&head, features, label);
}
