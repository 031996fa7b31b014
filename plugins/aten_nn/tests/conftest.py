"""What several files share: a whole module, exported once and compared at several sizes."""

import onnxruntime
import pytest
import torch
import torch.utils._pytree as pytree

import atonnx


@pytest.fixture
def run():
    """``run(module, args, dynamic_shapes, others, opset)``: the program, after comparing all arguments."""

    def compare(module, args, shapes, others, opset):
        module = module.eval()
        program = atonnx.export(module, args, dynamic_shapes=shapes, opset_version=opset)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
        names = [value.name for value in session.get_inputs()]
        for given in (args, *others):
            feeds = dict(zip(names, (x.numpy() for x in pytree.tree_leaves(given)), strict=True))
            with torch.no_grad():
                expected = [x for x in pytree.tree_leaves(module(*given)) if x is not None]
            for got, want in zip(session.run(None, feeds), expected, strict=True):
                torch.testing.assert_close(torch.from_numpy(got), want, rtol=1e-4, atol=1e-5)
        return program

    return compare
