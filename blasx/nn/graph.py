"""Forward, loss and backward of a model as one CUDA graph.

A step of training is a few hundred launches, each of which costs the host some microseconds: where
layers are small the GPU waits for it. A graph is made of them once and launched as a whole.
"""

from ._arrays import module
from .layer import Layer, Parameter
from .optim import squares


class Graph:
    """The loss of a model on the GPU, and its gradients, by one launch.

        graph = Graph(model, loss)
        value = graph(x, y)            # as loss.forward(model.forward(x), y), and all of backward
        optimiser.step()

    Parameters
    ----------
    model : Layer
        Its parameters are CuPy's.
    loss : Loss
    optimiser : Optimiser, optional
        One of a part of the model: `squares` is of what it steps.

    Attributes
    ----------
    answer : array
        What the model answered in the last call.
    squares : 0-d float64 array
        The sum of the squares of that call's gradients.

    Notes
    -----
    The first call for a shape of x and y (and scale of the loss, and layers in training or not)
    runs the model as it is, which compiles its kernels, then once more for the graph to see, and
    waits for the stream before; later calls copy x and y to where the graph reads them and do not
    wait. The same bits as without a graph. Parameters that have been replaced, not changed in
    place, are noticed and make a new graph.

    `answer`, the loss and gradients lie in the graph's memory, and its next call overwrites them;
    that memory is the graph's for good, as much as one step needs. One call at a time: graphs of
    several shapes share what they do not answer.

    Layers that change more on the host than a graph sees, as Dropout in training, are refused with
    a ValueError that names them.
    """

    def __init__(self, model, loss, optimiser=None):
        own = next(iter(model.parameters().values()), None)
        if own is None or module(own.value).__name__ != "cupy":
            where = "has no parameters" if own is None else \
                f"has arrays of {module(own.value).__name__}"
            raise TypeError(f"Graph: model must be on the GPU, {model!r} {where}")
        import cupy
        self.model, self.loss, self._graphs = model, loss, {}
        self._stepped = (optimiser.parameters if optimiser else model.parameters()).values()
        self._layers = [part for _, part in model.walk() if isinstance(part, Layer)]
        self._pool, self._stream = cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)

    def __call__(self, x, y):
        """The loss, a 0-d array; the parameters' gradients have this call's added."""
        arrays = (*x, y) if isinstance(x, tuple) else (x, y)
        for a in arrays:
            if not hasattr(a, "dtype") or module(a).__name__ != "cupy":
                raise TypeError(f"Graph: x and y must be arrays of cupy, got {type(a).__name__}")
        key = (self.loss.scale, *(layer.training for layer in self._layers),
               *((a.shape, a.dtype.char) for a in arrays))
        made = self._graphs.get(key)
        if made is None or any(p.value is not value for p, value in made.values):
            made = self._graphs[key] = _Captured(self, arrays, isinstance(x, tuple))
        for p, gradient in made.gradients:
            if p.grad is gradient:  # of the call before, which is to be added to
                p.grad = gradient.copy()
        for there, a in zip(made.inputs, arrays):
            there[...] = a
        made.graph.launch()
        for p, gradient in made.gradients:
            p.add(gradient)
        self.answer, self.squares = made.answer, made.squares
        return made.loss


class _Captured:
    """The graph of one shape: what it reads, `inputs` and `values`, and what it leaves."""

    def __init__(self, of, arrays, several):
        import cupy

        from .._cuda import keeping_memory
        model, loss = of.model, of.loss
        parts = [(path, p) for path, p in model.walk() if isinstance(p, Parameter)]
        self.values = [(p, p.value) for _, p in parts]
        remembered = [(path, p, p.value, p.value.copy()) for path, p in parts if not p.trained]
        before = [(p, p.grad) for _, p in parts]

        def step():
            for p, _ in before:
                p.grad = None
            self.answer = model.forward(x)
            self.loss = loss.forward(self.answer, y)
            dy = loss.backward()
            model.backward(dy, dx=False) if model.SKIPS_DX else model.backward(dy)
            self.squares = squares(of._stepped)

        cupy.cuda.get_current_stream().synchronize()
        try:
            with of._stream, cupy.cuda.using_allocator(of._pool.malloc):
                self.inputs = [a.copy() for a in arrays]
                *xs, y = self.inputs
                x = tuple(xs) if several else xs[0]
                step()
                replaced = [path for path, p, value, _ in remembered if p.value is not value]
                for _, p, value, was in remembered:
                    p.value = value
                    value[...] = was
                of._stream.synchronize()
                if replaced:
                    path, _, name = replaced[0].rpartition(".")
                    raise ValueError(f"Graph: layer {path} {dict(model.walk())[path]!r} changes "
                                     f"{name} on the host at every step, which a graph cannot")
                of._stream.begin_capture()
                try:
                    with keeping_memory():
                        step()
                finally:
                    self.graph = of._stream.end_capture()
                self.gradients = [(p, p.grad) for p, _ in before if p.grad is not None]
        finally:
            for p, gradient in before:
                p.grad = gradient
