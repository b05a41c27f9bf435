"""Nodes by hand: building, inspecting, matching, rewriting."""
import plugrad as pg
from plugrad import Match, Pattern, PatternMatcher, UOp


def main() -> None:
    two = UOp.constant(2, "int32")
    total = two + two
    print(total)
    # %0 = const i32 2
    # %1 = add i32 %0, %0
    # return %1

    def add(match: Match) -> UOp:
        return UOp.constant(match["a"].integer() + match["b"].integer(), match.root.dtype)

    a, b, x = Pattern.constant("a"), Pattern.constant("b"), Pattern.any("x")
    fold = PatternMatcher([(a + b, add)])
    print(fold.rewrite(total))  # const i32 4

    # The same rule as a pattern; structurally equal nodes are one node.
    same = PatternMatcher([(Pattern.op("add", [a, b]), a + b)])
    assert same.rewrite(total) == fold.rewrite(total) == total.simplify()

    # Tensors are nodes of the same graph.
    t = pg.Tensor([1, 2, 3])
    assert (t * 4).uop == t.uop * 4
    shift = PatternMatcher([(x * 4, lambda m: UOp.make("shl", [m["x"], m["x"] * 0 + 2]))])
    print(shift.rewrite((t * 4).uop).tensor().tolist())  # [4, 8, 12]


if __name__ == "__main__":
    main()
