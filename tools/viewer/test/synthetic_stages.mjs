// Stages with rewrites: (x * 1 + 0) in the schedule, an address in codegen; and a large one.

export const RULES = [
  {
    t: 'rule',
    id: 1,
    name: 'mul-one',
    file: 'core/src/symbolic/rules/algebra.cpp',
    line: 14,
    before: 'x * 1',
    after: 'x',
    condition: '',
  },
  {
    t: 'rule',
    id: 2,
    name: 'add-zero',
    file: 'core/src/symbolic/rules/algebra.cpp',
    line: 15,
    before: 'x + 0',
    after: 'x',
    condition: 'is_int(x)',
  },
  {
    t: 'rule',
    id: 3,
    name: 'wrap-cast',
    file: 'core/src/codegen/lowering/casts.cpp',
    line: 40,
    before: 'x',
    after: 'cast(x)',
    condition: '',
  },
];

/// relu(x * 1 + 0): mul-one, its users rebuilt, add-zero, its user rebuilt.
export function scheduleStages() {
  return [
    {
      t: 'stage',
      id: 1,
      pipeline: 'schedule',
      name: 'simplify',
      meaning: 'identities of algebra are gone',
      run: 1,
      text: '%9 = max %1 0',
      nodes: [
        [1, 'buffer', 'f32', 'x', []],
        [2, 'const', 'f32', '1', []],
        [3, 'mul', 'f32', '', [1, 2]],
        [4, 'const', 'f32', '0', []],
        [5, 'add', 'f32', '', [3, 4]],
        [6, 'max', 'f32', '', [5, 4]],
        [7, 'add', 'f32', '', [1, 4]],
        [8, 'max', 'f32', '', [7, 4]],
        [9, 'max', 'f32', '', [1, 4]],
      ],
      before: [6],
      after: [9],
      rewrites: [
        [1, 3, 1],
        [0, 5, 7],
        [2, 7, 1],
        [0, 6, 9],
      ],
    },
    {
      t: 'stage',
      id: 2,
      pipeline: 'schedule',
      name: 'fusion roots',
      meaning: 'values that are stored are chosen',
      run: 1,
      text: '%9 stored',
      nodes: [
        [1, 'buffer', 'f32', 'x', []],
        [4, 'const', 'f32', '0', []],
        [9, 'max', 'f32', '', [1, 4]],
      ],
      before: [9],
      after: [9],
      rewrites: [],
    },
  ];
}

/// A stage whose rule wraps a node in one that has it as source: x -> cast(x).
export function codegenStages() {
  return [
    {
      t: 'stage',
      id: 3,
      pipeline: 'codegen',
      name: 'lower casts',
      meaning: 'casts are explicit',
      run: 2,
      text: '%4 = cast i32 %1\n%7 = store %5',
      nodes: [
        [1, 'load', 'f32', '', []],
        [2, 'const', 'i32', '3', []],
        [3, 'add', 'i32', '', [1, 2]],
        [4, 'cast', 'i32', '', [1]],
        [5, 'add', 'i32', '', [4, 2]],
        [6, 'store', 'void', '', [3]],
        [7, 'store', 'void', '', [5]],
      ],
      before: [6],
      after: [7],
      rewrites: [
        [3, 1, 4],
        [0, 3, 5],
        [0, 6, 7],
      ],
    },
  ];
}

/// A stage of about `count` nodes: a chain of sums of (x * 1), each rewritten.
export function largeStage(count) {
  const nodes = [[1, 'const', 'i32', '1', []]],
    rewrites = [];
  let sum = 1,
    id = 2;
  while (nodes.length + 3 <= count) {
    nodes.push(
      [id, 'define', 'i32', `v${id}`, []],
      [id + 1, 'mul', 'i32', '', [id, 1]],
      [id + 2, 'add', 'i32', '', [sum, id + 1]],
    );
    rewrites.push([1, id + 1, id]);
    sum = id + 2;
    id += 3;
  }
  return {
    t: 'stage',
    id: 9,
    pipeline: 'codegen',
    name: 'simplify',
    meaning: 'a large stage',
    run: 9,
    text: '',
    nodes,
    before: [sum],
    after: [sum],
    rewrites,
  };
}
