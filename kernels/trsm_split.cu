// trsm_split.cu: L X = alpha B for a batch of complex numbers in single precision, as trsm_block.cu
// says, products by the tensor cores: a real number is the sum of two of 11 bits, a product three
// of theirs (tensor.cuh).
#define SPLIT true
#define trsm_block trsm_split
#include "trsm_block.cu"
