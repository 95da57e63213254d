"""blasx.nn: layers of neural networks on blasx's own products, forward and backward by hand.

    model = Sequential(Dense(784, 16, rng=0), ReLU(), Dense(16, 10, rng=1))
    history = fit(model, CrossEntropy(), Adam(model), x, labels, epochs=10)

A layer's file has its mathematics: what it computes and the derivative, side by side. Arrays are
NumPy's or CuPy's; a layer works where its arrays are, float32 unless asked otherwise: `dtype=`, or
`model.to(dtype=...)` for all, float64, float16 or bfloat16.

    layer        Layer Parameter Sequential Residual Flatten
    dense        Dense
    activations  ReLU Tanh Sigmoid ELU GELU Softplus Swish Softmax LogSoftmax
    conv         Conv1d Conv2d
    pool         MaxPool AveragePool GlobalMaxPool GlobalAveragePool
    norm         BatchNorm LayerNorm RMSNorm LocalResponseNorm
    dropout      Dropout
    embedding    Embedding Positions sinusoids
    recurrent    RNN GRU LSTM
    attention    DotProductAttention AdditiveAttention MultiHeadAttention EncoderBlock DecoderBlock
    losses       MeanSquare CrossEntropy BinaryCrossEntropy
    optim        SGD Adam AdamW LossScale, clipping, schedules
    train        fit evaluate History
    graph        Graph: a step as one launch
    checkpoint   save load load_torch CorruptFile
"""

from . import checkpoint, optim
from .activations import (
    ELU,
    GELU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    Softmax,
    Softplus,
    Swish,
    Tanh,
)
from .attention import (
    AdditiveAttention,
    DecoderBlock,
    DotProductAttention,
    EncoderBlock,
    MultiHeadAttention,
)
from .checkpoint import CorruptFile, load_torch
from .conv import Conv1d, Conv2d
from .dense import Dense
from .dropout import Dropout
from .embedding import Embedding, Positions, sinusoids
from .graph import Graph
from .layer import Flatten, Layer, Parameter, Residual, Sequential
from .losses import BinaryCrossEntropy, CrossEntropy, MeanSquare
from .norm import BatchNorm, LayerNorm, LocalResponseNorm, RMSNorm
from .optim import SGD, Adam, AdamW, LossScale
from .pool import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool
from .recurrent import GRU, LSTM, RNN
from .train import History, evaluate, fit
