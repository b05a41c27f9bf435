// Einstein summation.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kEinsumRows("matmul", {
    {"einsum_0", "torch.einsum('ij->ji', x)", {{{15, 15}}}, [](const In& x) { return einsum("ij->ji", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_1", "torch.einsum('jk', x)", {{{15, 15}}}, [](const In& x) { return einsum("jk", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_2", "torch.einsum('kj', x)", {{{4, 5}}}, [](const In& x) { return einsum("kj", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_3", "torch.einsum('zyx', x)", {{{3, 4, 5}}}, [](const In& x) { return einsum("zyx", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_4", "torch.einsum('ij->', x)", {{{15, 15}}}, [](const In& x) { return einsum("ij->", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_5", "torch.einsum('ij->j', x)", {{{15, 15}}}, [](const In& x) { return einsum("ij->j", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_6", "torch.einsum('ij->i', x)", {{{15, 15}}}, [](const In& x) { return einsum("ij->i", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_7", "torch.einsum('ik,k->i', x, y)", {{{15, 20}}, {{20}}}, [](const In& x) { return einsum("ik,k->i", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_8", "torch.einsum('ik,kj->ij', x, y)", {{{15, 20}}, {{20, 5}}}, [](const In& x) { return einsum("ik,kj->ij", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_9", "torch.einsum('i,i->i', x, y)", {{{3}}, {{3}}}, [](const In& x) { return einsum("i,i->i", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_10", "torch.einsum('i,j->ij', x, y)", {{{5}}, {{7}}}, [](const In& x) { return einsum("i,j->ij", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_11", "torch.einsum('ij,ij->', x, y)", {{{15, 15}}, {{15, 15}}}, [](const In& x) { return einsum("ij,ij->", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_12", "torch.einsum('ij,ij->ij', x, y)", {{{3, 4}}, {{3, 4}}}, [](const In& x) { return einsum("ij,ij->ij", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_13", "torch.einsum('ijk,ikl->ijl', x, y)", {{{5, 3, 4}}, {{5, 4, 2}}}, [](const In& x) { return einsum("ijk,ikl->ijl", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_14", "torch.einsum('pqrs,tuqvr->pstuv', x, y)", {{{3, 5, 2, 4}}, {{3, 2, 5, 3, 2}}}, [](const In& x) { return einsum("pqrs,tuqvr->pstuv", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_15", "torch.einsum('ik,jkl,il->ij', x, y, z)", {{{3, 4}}, {{5, 4, 2}}, {{3, 2}}}, [](const In& x) { return einsum("ik,jkl,il->ij", {x[0], x[1], x[2]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_16", "torch.einsum('ijk,jil->kl', x, y)", {{{3, 4, 5}}, {{4, 3, 2}}}, [](const In& x) { return einsum("ijk,jil->kl", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_17", "torch.einsum('abc,cd->abd', x, y)", {{{2, 3, 4}}, {{4, 5}}}, [](const In& x) { return einsum("abc,cd->abd", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_18", "torch.einsum(' i j , j k -> i k ', x, y)", {{{3, 4}}, {{4, 5}}}, [](const In& x) { return einsum(" i j , j k -> i k ", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_19", "torch.einsum('bij,bjk->bik', x, y)", {{{3, 4, 5}}, {{3, 5, 2}}}, [](const In& x) { return einsum("bij,bjk->bik", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_20", "torch.einsum('bn,anm,bm->ba', x, y, z)", {{{3, 4}}, {{5, 4, 6}}, {{3, 6}}}, [](const In& x) { return einsum("bn,anm,bm->ba", {x[0], x[1], x[2]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_21", "torch.einsum('ab,cd,ef->acf', x, y, z)", {{{2, 3}}, {{4, 2}}, {{3, 5}}}, [](const In& x) { return einsum("ab,cd,ef->acf", {x[0], x[1], x[2]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_22", "torch.einsum('a,ab,abc->abc', x, y, z)", {{{3}}, {{3, 4}}, {{3, 4, 2}}}, [](const In& x) { return einsum("a,ab,abc->abc", {x[0], x[1], x[2]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_23", "torch.einsum('ij,kj', x, y)", {{{3, 4}}, {{5, 4}}}, [](const In& x) { return einsum("ij,kj", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_24", "torch.einsum('a...b->b...a', x)", {{{3, 4, 5}}}, [](const In& x) { return einsum("a...b->b...a", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_25", "torch.einsum('i...j,ji...->...', x, y)", {{{3, 4, 5}}, {{5, 3, 4}}}, [](const In& x) { return einsum("i...j,ji...->...", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_26", "torch.einsum('...ij,...jk->...ik', x, y)", {{{2, 1, 3, 4}}, {{5, 4, 6}}}, [](const In& x) { return einsum("...ij,...jk->...ik", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_27", "torch.einsum('...a,...b', x, y)", {{{2, 3}}, {{2, 4}}}, [](const In& x) { return einsum("...a,...b", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_28", "torch.einsum('ii', x)", {{{5, 5}}}, [](const In& x) { return einsum("ii", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_29", "torch.einsum('ii->i', x)", {{{5, 5}}}, [](const In& x) { return einsum("ii->i", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_30", "torch.einsum('...ii->...i', x)", {{{3, 4, 4}}}, [](const In& x) { return einsum("...ii->...i", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_31", "torch.einsum('iij->j', x)", {{{4, 4, 3}}}, [](const In& x) { return einsum("iij->j", {x[0]}); }, {.forward = {1e-5, 1e-3}}},
    {"einsum_32", "torch.einsum('ij,jj->i', x, y)", {{{3, 4}}, {{4, 4}}}, [](const In& x) { return einsum("ij,jj->i", {x[0], x[1]}); }, {.forward = {1e-5, 1e-3}}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops
