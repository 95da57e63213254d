"""Factorizations of one large matrix on the GPU, by kernels of ours with products by cuBLAS and by
pairs of half precision (_gpu_gemm.py)."""
