// trsm_split.cu: trsm_block of complex numbers in single precision on the tensor cores.
#define SPLIT true
#define trsm_block trsm_split
#include "trsm_block.cu"
