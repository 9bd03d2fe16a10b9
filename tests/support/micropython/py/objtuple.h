#include "py/runtime.h"
