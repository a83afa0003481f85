//! Halves of answers, made apart and put together, against whole ones: equal bytes.

use crate::ring::Owner;
use crate::rows::Rows;
use ciphervec_he_secret::lattice::ring::{
    self, AnswerWords, Ciphertext, Expanded, Half, Layout, Vectors,
};

const SEEDS: [[u8; 32]; 3] = [[1; 32], [4; 32], [5; 32]];

fn encrypt(owner: &Owner, layout: &Layout, query: usize) -> Vec<Ciphertext> {
    let (values, _) = Rows::random_unit(1, layout.dimension(), 1e6, 40 + query as u8);
    let noise = [90 + query as u8; 32];
    owner.key.encrypt(&owner.ring, layout, &values.values, &SEEDS[query], &noise, 0)
}

/// All of one query's answer over one segment.
fn whole(owner: &Owner, tree: &Expanded, data: &[u8], rows: usize, words: AnswerWords) -> Vec<u8> {
    let (ring, layout) = (&owner.ring, tree.layout());
    let mut answer = vec![0; words.answer_len(layout, rows)];
    for blocks in layout.ranges(rows, 1) {
        let sums = ring::scan(ring, layout, data, rows, blocks.clone(), &[tree]);
        ring::write_answer(ring, layout, words, blocks, &sums[0], &mut answer);
    }
    answer
}

/// The same half for the queries that share a tree.
fn halves(
    owner: &Owner,
    tree: &Expanded,
    half: Half,
    data: &[u8],
    rows: usize,
    words: AnswerWords,
    queries: usize,
) -> Vec<Vec<u8>> {
    let (ring, layout) = (&owner.ring, tree.layout());
    let mut answers = vec![vec![0; words.half_len(half, layout, rows)]; queries];
    for blocks in layout.ranges(rows, 1) {
        let sums = ring::scan(ring, layout, data, rows, blocks.clone(), &[tree]);
        let mut outs: Vec<&mut [u8]> = answers.iter_mut().map(Vec::as_mut_slice).collect();
        ring::write_halves(ring, layout, words, half, blocks, &sums[0], &mut outs);
    }
    answers
}

/// V is computed from seeds alone, before anything is encrypted under them; a pair of queries and a lone one.
#[test]
fn halves_put_together_are_the_whole_answers_bit_for_bit() {
    for (dimension, levels) in
        [(1, vec![0]), (3, vec![0, 2]), (64, vec![0, 3, 6]), (300, vec![7]), (5000, vec![2, 4])]
    {
        let owner = Owner::new(dimension);
        let layouts: Vec<Layout> =
            levels.iter().map(|&level| Layout::new(dimension, level).unwrap()).collect();
        let pieces = layouts[0].chunks();
        let masks = |query: usize| -> Vec<Ciphertext> {
            let piece = |piece| Ciphertext::masks_alone(&owner.ring, &SEEDS[query], piece as u64);
            (0..pieces).map(piece).collect()
        };
        let expand = |half, sent: &dyn Fn(usize) -> Vec<Ciphertext>| {
            let pair = |first: usize, second: Option<usize>| {
                let second = second.map(sent);
                let (ring, keys) = (&owner.ring, &owner.keys);
                ring::expand_halves(ring, keys, half, &sent(first), second.as_deref(), &layouts)
                    .unwrap()
            };
            [pair(0, Some(1)), pair(2, None)]
        };
        let linear = expand(Half::Linear, &masks);
        let encrypted = |query| encrypt(&owner, &layouts[0], query);
        let constant = expand(Half::Constant, &encrypted);
        for (at, layout) in layouts.iter().enumerate() {
            let rows = layout.vectors_per_block() * 5 + 3;
            for vectors in [Vectors::Sealed, Vectors::Plain] {
                let (values, _) = Rows::random_unit(rows, dimension, 1e5, 1);
                let data = owner
                    .pack(layout, &values, (vectors, owner.ring.scales(1e5, layout.level())))
                    .words;
                for words in [20, 25, 32] {
                    let words = AnswerWords::new(words).unwrap();
                    let of = |half, trees: &[Vec<Expanded>; 2]| {
                        let of = |pair: usize, queries| {
                            halves(&owner, &trees[pair][at], half, &data, rows, words, queries)
                        };
                        [of(0, 2), of(1, 1)].concat()
                    };
                    let ahead = of(Half::Linear, &linear);
                    let online = of(Half::Constant, &constant);
                    for query in 0..3 {
                        let mut joined = vec![0; words.answer_len(layout, rows)];
                        let (v, u) = (&ahead[query], &online[query]);
                        ring::join_halves(layout, words, v, u, &mut joined);
                        let pieces = encrypted(query);
                        let trees =
                            ring::expand(&owner.ring, &owner.keys, &pieces, &layouts).unwrap();
                        let expected = whole(&owner, &trees[at], &data, rows, words);
                        assert!(joined == expected, "d={dimension} {layout:?} query {query}");
                    }
                }
            }
        }
    }
}
