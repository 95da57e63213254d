"""One large matrix on the GPU, by kernels of ours and products of any making."""
