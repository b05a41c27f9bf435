"""Nodes, patterns and rules in Python."""
import gc
import traceback
import weakref

import pytest

import plugrad as pg
from plugrad import Pattern, PatternMatcher, UOp

A, B, X = Pattern.constant("a"), Pattern.constant("b"), Pattern.any("x")


def test_nodes_are_built_and_read():
    two = UOp.constant(2, "int32")
    total = two + two
    assert (total.op, total.dtype, total.shape, total.arg) == ("add", pg.int32, (), ())
    assert total.sources == [two, two] and total.size == 2
    assert two.is_constant and two.integer() == 2 and UOp(2.5).number() == 2.5
    assert "%1 = add i32 %0, %0" in str(total) and repr(total) == "<UOp add i32(), 2 sources>"
    assert UOp.parse(total.to_string()) == [total]
    assert total == two + 2 and hash(total) == hash(two + 2) and total != two
    assert len({total, two + 2, two}) == 2
    assert total.simplify() == UOp.constant(4, "int32")
    with pytest.raises(ValueError):
        total.integer()


@pytest.mark.parametrize("build, value", [
    (lambda x: x + 3, 10), (lambda x: 3 - x, -4), (lambda x: x * 2, 14), (lambda x: x // 2, 3),
    (lambda x: x % 4, 3), (lambda x: -x, -7), (lambda x: x & 3, 3), (lambda x: 8 | x, 15),
    (lambda x: x ^ 1, 6), (lambda x: (x < 8).where(x, 0), 7),
    (lambda x: (x > 8).where(x, 5), 5), (lambda x: UOp.make("max", [x, 9]), 9)])
def test_operators_take_numbers(build, value):
    assert build(UOp.constant(7, "int32")).simplify().integer() == value


def test_floats_and_casts():
    x = UOp.constant(1.5, pg.float32)
    assert (x / 3).simplify().number() == 0.5
    assert x.cast("float64").dtype == pg.float64
    assert UOp(True).dtype == pg.bool_


def test_tensors_are_nodes():
    t = pg.Tensor([1, 2, 3])
    assert (t * 4).uop == t.uop * 4
    shift = PatternMatcher([(X * 4, lambda m: UOp.make("shl", [m["x"], m["x"] * 0 + 2]))])
    assert shift.rewrite((t * 4).uop).tensor().tolist() == [4, 8, 12]


def test_rules_are_functions_or_patterns():
    two = UOp.constant(2, "int32")
    fold = PatternMatcher([
        (A + B, lambda m: UOp.constant(m["a"].integer() + m["b"].integer(), m.root.dtype), "fold")])
    same = PatternMatcher([(Pattern.op("add", [A, B]), A + B)])
    assert fold.rewrite(two + two) == same.rewrite(two + two) == UOp.constant(4, "int32")
    assert fold.apply(two) is None
    assert fold.apply(two + two).integer() == 4
    decline = PatternMatcher([(A + B, lambda m: None), (A + B, lambda m: 9)])
    assert decline.rewrite(two + two).integer() == 9


class Custom(Exception):
    pass


def test_exceptions_pass_through_the_matcher():
    def rule(match):
        raise Custom(match.root.op)

    matcher = PatternMatcher([(A + B, rule)])
    node = UOp.constant(2, "int32") + 3
    with pytest.raises(Custom, match="add") as info:
        matcher.rewrite(node)
    assert traceback.extract_tb(info.value.__traceback__)[-1].name == "rule"
    with pytest.raises(Custom):
        matcher.apply(node)


def test_errors():
    node = UOp.constant(2, "int32") + 3
    with pytest.raises(ValueError, match="no such|name"):
        PatternMatcher([(A + B, lambda m: m["z"])]).rewrite(node)
    with pytest.raises(TypeError, match=r"\[mine\].*UOp, a number, or None"):
        PatternMatcher([(A + B, lambda m: "a", "mine")]).rewrite(node)
    for wrong in ([3], [(A,)], [(A, B, "n", 1)], [(3, A)], [(A, object())]):
        with pytest.raises(TypeError, match="PatternMatcher"):
            PatternMatcher(wrong)
    with pytest.raises(ValueError):
        PatternMatcher([(A + B, lambda m: m["b"] + m["a"] + 0)]).rewrite(node)
    with pytest.raises(OverflowError):
        UOp(2**70)
    with pytest.raises(OverflowError):
        node + 2**70
    with pytest.raises(TypeError):
        node + "a"
    with pytest.raises(ValueError):
        UOp.make("nonsense", [])
    with pytest.raises(ValueError):
        UOp.parse("nonsense")
    with pytest.raises(ValueError):
        UOp.range(4, 0).tensor()


def test_matchers_end():
    def make() -> weakref.ref:
        def rule(match):
            return matcher and None

        matcher = PatternMatcher([(A + B, rule)])  # a cycle through the closure
        node = UOp.constant(2, "int32") + 3
        for _ in range(10_000):
            matcher.apply(node)
        return weakref.ref(rule)

    ref = make()
    gc.collect()
    assert ref() is None
