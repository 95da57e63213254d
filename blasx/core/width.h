/* Everything for vectors of WIDTH bytes: the four types. */

#define REAL float
#define INTEGER int32_t
#define SAFE FLT_MIN
#define EPSILON (FLT_EPSILON / 2)
#define LEAST_POWER (-100)
#define SQUARES_OVER 0x1p+50f
#define SQUARES_SCALE 0x1p+100f
#define SQRT __builtin_sqrtf
#define ABS __builtin_fabsf

#define LETTER s
#define COMPLEX 0
#define ROWS 4
#include "type.h"
#undef LETTER
#undef COMPLEX
#undef ROWS

#define LETTER c
#define COMPLEX 1
#define ROWS 2
#include "type.h"
#undef LETTER
#undef COMPLEX
#undef ROWS

#undef REAL
#undef INTEGER
#undef SAFE
#undef EPSILON
#undef LEAST_POWER
#undef SQUARES_OVER
#undef SQUARES_SCALE
#undef SQRT
#undef ABS

#define REAL double
#define INTEGER int64_t
#define SAFE DBL_MIN
#define EPSILON (DBL_EPSILON / 2)
#define LEAST_POWER (-1000)
#define SQUARES_OVER 0x1p+500
#define SQUARES_SCALE 0x1p+700
#define SQRT __builtin_sqrt
#define ABS __builtin_fabs

#define LETTER d
#define COMPLEX 0
#define ROWS 4
#include "type.h"
#undef LETTER
#undef COMPLEX
#undef ROWS

#define LETTER z
#define COMPLEX 1
#define ROWS 2
#include "type.h"
#undef LETTER
#undef COMPLEX
#undef ROWS

#undef REAL
#undef INTEGER
#undef SAFE
#undef EPSILON
#undef LEAST_POWER
#undef SQUARES_OVER
#undef SQUARES_SCALE
#undef SQRT
#undef ABS
