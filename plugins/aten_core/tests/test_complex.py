"""Complex tensors, as pairs of real numbers, give what eager torch gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NEAR = kit.ulps(256)


def numbers(shapes=(2, 3), dtypes=torch.complex64):
    """Complex tensors without infinities and extremes, for which eager itself has several answers."""
    return kit.tensor(dtypes, shapes, finite=True, low=-4, high=4)


def name(packet):
    return getattr(packet, "__name__", str(packet))


FUNCTIONS = [
    *(aten.exp, aten.exp2, aten.expm1, aten.log1p, aten.sqrt, aten.sigmoid, aten.sin, aten.cos, aten.tan),
    *(aten.sinh, aten.cosh, aten.tanh, aten.asin, aten.acos, aten.atan, aten.asinh, aten.acosh, aten.atanh),
    *(aten.square, aten.abs, aten.sgn, aten.neg, aten.log, aten.angle),
]


@pytest.mark.parametrize("packets", [FUNCTIONS[::2], FUNCTIONS[1::2]], ids=["even", "odd"])
@given(data=st.data(), opset=kit.opsets(), z=numbers(kit.shapes(max_rank=2), kit.dtypes("complex")))
def test_a_function_of_complex_numbers(packets, data, opset, z):
    packet = data.draw(st.sampled_from(packets))
    z = torch.where(z.abs() < 0.05, 0.5 - 0.25j, z).to(z.dtype)
    kit.check_op(packet.default, z, opset=opset, atol=NEAR)


@pytest.mark.parametrize("packet", FUNCTIONS, ids=name)
def test_every_function_at_one_place(packet):
    z = torch.tensor([[1 + 2j, -0.5 - 0.75j, 3j]])
    kit.check_op(packet.default, z, opset=20, atol=NEAR)


def test_magnitudes_beyond_the_range_of_squares():
    z = torch.tensor([3e30 + 4e30j, 3e-30 + 4e-30j, 0j, complex("inf")])
    for packet in (aten.abs, aten.log):
        kit.check_op(packet.default, z, opset=20, rtol=1e-5, atol=0.0)
    kit.check_op(aten.sgn.default, z[:3], opset=20, rtol=1e-5)
    kit.check_op(aten.div.Tensor, z[:2], z[:2].conj_physical(), opset=20, rtol=1e-5)


@pytest.mark.parametrize(
    "packet", [aten.sqrt, aten.log, aten.asin, aten.acos, aten.acosh, aten.atanh], ids=name
)
def test_both_sides_of_a_cut(packet):
    z = torch.view_as_complex(torch.tensor([[-2.0, 0.0], [-2.0, -0.0], [3.0, 0.0], [3.0, -0.0]]))
    kit.check_op(packet.default, z, opset=20, atol=NEAR)


@given(
    packet=st.sampled_from([aten.add, aten.sub, aten.mul, aten.div]),
    opset=kit.opsets(),
    shapes=kit.broadcastable(2, max_rank=3),
    kinds=st.sampled_from(
        [
            (torch.complex64, torch.complex64),
            (torch.complex64, torch.float32),
            (torch.float64, torch.complex64),
            (torch.complex128, torch.complex64),
            (torch.int64, torch.complex64),
        ]
    ),
    seed=st.integers(0, 99),
)
def test_arithmetic_promotes_operands(packet, opset, shapes, kinds, seed):
    a, b = (kit.make_tensor(k, s, seed + i) for i, (k, s) in enumerate(zip(kinds, shapes, strict=True)))
    if packet is aten.div:
        b = torch.where(b == 0, torch.ones_like(b), b)
    kit.check_op(packet.Tensor, a, b, opset=opset, atol=NEAR)


@given(
    packet=st.sampled_from([aten.add, aten.rsub, aten.mul, aten.div]),
    opset=kit.opsets(),
    z=numbers(),
    number=st.sampled_from([2, -0.5, 1 + 2j, -1j]),
)
def test_arithmetic_with_numbers(packet, opset, z, number):
    kit.check_op(packet.Scalar, z, number, opset=opset, atol=NEAR)
    kit.check_op(packet.Scalar, z.real.clone(), complex(number) + 0.5j, opset=opset, atol=NEAR)


def test_products_in_half_precision_are_rounded_once():
    z = torch.view_as_complex(kit.make_tensor(torch.float16, (4, 2), 1))
    kit.check_op(aten.mul.Tensor, z, z, opset=20)


@given(
    opset=kit.opsets(),
    z=numbers(),
    exponent=st.sampled_from([0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 1 - 1j]),
)
def test_powers(opset, z, exponent):
    z = torch.where(z.abs() < 0.05, 0.5 - 0.25j, z).to(z.dtype)
    kit.check_op(aten.pow.Tensor_Scalar, z, exponent, opset=opset, rtol=1e-4, atol=NEAR)
    kit.check_op(aten.pow.Tensor_Tensor, z, z / 4, opset=opset, rtol=1e-4, atol=NEAR)
    kit.check_op(aten.pow.Scalar, exponent, z, opset=opset, rtol=1e-4, atol=NEAR)


def test_powers_of_a_number_take_its_logarithm_as_torch_does():
    torch.manual_seed(0)
    z = torch.complex(torch.empty(2000).uniform_(-9, 9), torch.empty(2000).uniform_(-9, 9))
    kit.check_op(aten.pow.Scalar, 5.1067 + 1.1351j, z, rtol=1e-5)


def test_powers_have_the_roundings_of_the_logarithm():
    z = torch.tensor([-12.274122 + 9.634394j, -0.45917913 + 18.9392j, -7.6231427 + 2.7114396j])
    exponents = torch.tensor([7.0999527 + 2.829853j, 3.432183 - 7.6366653j, -5.762443 - 5.938204j])
    kit.check_op(aten.pow.Tensor_Tensor, z, exponents)


def test_powers_of_zero():
    z = torch.zeros(6, dtype=torch.complex64)
    exponents = torch.tensor([1 + 2j, 0j, 2.5 + 0j, -1 + 2j, 1j, -2 + 0j])
    kit.check_op(aten.pow.Tensor_Tensor, z, exponents, opset=20)
    kit.check_op(aten.pow.Scalar, 0, exponents, opset=20)


@given(
    data=st.data(),
    opset=kit.opsets(),
    z=kit.tensor(torch.complex64, (2, 3)),
    w=kit.tensor(torch.complex64, (3,)),
)
def test_comparisons_and_truth(data, opset, z, w):
    packet = data.draw(st.sampled_from([aten.eq, aten.ne]))
    kit.check_op(packet.Tensor, z, w, opset=opset)
    kit.check_op(packet.Scalar, z, 1j, opset=opset)
    packet = data.draw(
        st.sampled_from([aten.isnan, aten.isinf, aten.isfinite, aten.logical_not, aten.isreal])
    )
    kit.check_op(packet.default, z, opset=opset)
    kit.check_op(aten.where.self, z.real > 0, z, w, opset=opset)


REDUCTIONS = [aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int, aten.var.dim, aten.std.dim]


@given(
    overload=st.sampled_from(REDUCTIONS),
    opset=kit.opsets(),
    z=numbers(kit.shapes(min_rank=2, max_rank=3)),
    keepdim=st.booleans(),
    dim=st.integers(-2, 1),
)
def test_reductions(overload, opset, z, keepdim, dim):
    axes = dim if overload is aten.prod.dim_int else [dim]
    more = [True] if overload in (aten.var.dim, aten.std.dim) else []
    kit.check_op(overload, z, axes, *more, keepdim, opset=opset, atol=NEAR)


@given(
    data=st.data(), opset=kit.opsets(), z=numbers(kit.shapes(min_rank=1, max_rank=3)), dim=st.integers(-1, 0)
)
def test_running_sums_and_products(data, opset, z, dim):
    packet = data.draw(st.sampled_from([aten.cumsum, aten.cumprod, aten.logcumsumexp]))
    kit.check_op(packet.default, z, dim, opset=opset, atol=NEAR, rtol=1e-4)


@given(opset=kit.opsets(), seed=st.integers(0, 99), which=st.sampled_from(["matmul", "addmm", "vdot"]))
def test_matrix_products(opset, seed, which):
    a = kit.make_tensor(torch.complex64, (2, 3, 4), seed)
    b = kit.make_tensor(torch.complex64, (4, 2), seed + 1)
    if which == "matmul":
        kit.check_op(aten.matmul.default, a, b, opset=opset, atol=NEAR)
    elif which == "addmm":
        kit.check_op(aten.addmm.default, b[0], a[0], b, alpha=2j, opset=opset, atol=NEAR)
    else:
        kit.check_op(aten.vdot.default, a[0, 0], b[:, 0].clone(), opset=opset, atol=NEAR)


@given(data=st.data(), opset=kit.opsets(), z=numbers((4, 3)), seed=st.integers(0, 99))
def test_reading_and_writing_by_index(data, opset, z, seed):
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randint(0, 4, (2, 3), generator=generator)
    rows = torch.randperm(4, generator=generator)[:2]
    calls = [
        (aten.gather.default, z, -2, cells),
        (aten.index_put.default, z, [None, rows % 3], z[:, :2] * 2),
        (aten.index_copy.default, z, 0, rows, z[:2] * 2),
        (aten.scatter.src, z, 0, torch.stack([rows, rows, rows], 1), z[:2] * 2),
        (aten.masked_select.default, z, z.real > 0),
        (aten.masked_fill.Scalar, z, z.real > 0, 2 - 1j),
        (aten.slice_scatter.default, z, z[:2] * 2, 0, 1, 3),
        (aten.tril.default, z, seed % 3 - 1),
        (aten.constant_pad_nd.default, z, [1, 0, -1, 2], 1.5),
    ]
    for call in data.draw(st.permutations(calls))[:2]:
        kit.check_op(*call, opset=opset)


@given(opset=kit.opsets(), z=numbers(), dtype=st.sampled_from([torch.complex128, torch.float32, torch.bool]))
def test_casts_and_joins(opset, z, dtype):
    kit.check_op(aten.to.dtype, z, dtype, opset=opset)
    kit.check_op(aten.to.dtype, z.real.clone(), torch.complex64, opset=opset)
    kit.check_op(aten.cat.default, [z.real.clone(), z], -1, opset=opset)


class Rotary(torch.nn.Module):
    """Rotary positions by a complex table."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(16.0), torch.tensor([1.0, 0.1, 0.01]))
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x):
        z = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(z * self.table[: x.shape[1]]).flatten(-2)


def test_a_product_with_a_constant_table_takes_few_nodes():
    import atonnx

    program = atonnx.export(Rotary(), (torch.randn(2, 5, 6),), verbose=False, opset_version=20)
    kinds = [node.op_type for node in program.model.graph]
    assert kinds.count("Mul") + kinds.count("Add") <= 4, kinds


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("overload", "arguments"),
    [
        *((o, ()) for o in (aten.sum.default, aten.mean.default, aten.prod.default)),
        *((o, (0,)) for o in (aten.prod.dim_int, aten.cumsum.default, aten.cumprod.default)),
        *((o, ([1],)) for o in (aten.sum.dim_IntList, aten.mean.dim)),
    ],
    ids=str,
)
def test_reductions_in_a_dtype_of_the_other_kind(overload, arguments, dynamic):
    z = torch.tensor([[1 + 2j, -0.5, 3j], [2, 1j, 4]])
    for x in (z.real.contiguous(), torch.tensor([[1, 2, 3], [4, 5, 6]])):
        kit.check_op(overload, x, *arguments, dtype=torch.complex64, dynamic=dynamic)
    kit.check_op(overload, z, *arguments, dtype=torch.float32, dynamic=dynamic)
