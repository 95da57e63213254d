/* Everything for one type at one width. */

#include "vectors.h"
#include "pack.h"
#include "lu.h"
#include "cholesky.h"
#include "solve.h"
#include "qr.h"
#include "reflect.h"
#include "eigen.h"
#include "svd.h"

#undef WORKER
#undef TILE
#undef RIGHT
#undef ABOVE
#undef SPAN
#undef OF_MEMBERS
#undef OF_ONE
#undef TOGETHER
#undef SUBSTITUTE
#undef REFLECT
#undef MULTIPLY
#undef INTO
#undef V
#undef VI
#undef E
#undef W
#undef PARTS
#undef OWN
#undef PASTE2
#undef PASTE3
#undef INLINE
