//! Addition chain: the additions that make a weighted sum of points. Server only.
//!
//! One chain runs on many columns.
//!
//! Sorted by size, `w₁ ≥ w₂ ≥ … ≥ wₙ`, a sum is one of its prefixes,
//!
//! > Σ wᵢ Pᵢ = Σ (wᵢ − wᵢ₊₁) (P₁ + … + Pᵢ),
//!
//! and the gaps are far shorter than the weights: 512 weights of eleven bits have gaps of four on
//! average, of which some twenty differ. Prefixes with the same gap are added up, and the same is
//! done with what remains: a weighted sum of twenty. That makes two additions a row less the equal
//! weights (a gap of zero needs none), 1.9 at 512 rows and 12 bits, where windows of signed digits
//! with buckets need 2.1; it is the method of Bos and Coster (in: de Rooij, EUROCRYPT '94) done for
//! all rows at once, and knows no window to choose. Signs cost nothing: a point is subtracted.

use std::cmp::Reverse;
use std::collections::HashMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::Identity;

/// Columns that take each step together: their rows lie side by side, and their registers stay in
/// the cache.
const BLOCK: usize = 4;

/// `N` points that are added component by component.
pub type Points<const N: usize> = [RistrettoPoint; N];

#[derive(Clone, Copy, Debug)]
enum Source {
    Row(usize),
    Register(usize),
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Copy,
    CopyNegated,
    Add,
    Subtract,
    Double,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    action: Action,
    to: usize,
    from: Source,
}

#[derive(Clone, Copy)]
struct Term {
    weight: u64,
    source: Source,
    negative: bool,
}

/// The additions that make a weighted sum.
pub struct AdditionChain {
    steps: Vec<Step>,
    registers: usize,
    /// Where the sum is in the end; nowhere when all weights are zero.
    result: Option<usize>,
}

impl AdditionChain {
    /// The program for one weight a row.
    pub fn new(weights: &[i64]) -> Self {
        let mut builder = Builder::default();
        let rows = weights.iter().enumerate().filter(|(_, weight)| **weight != 0);
        let terms = rows
            .map(|(row, weight)| Term {
                weight: weight.unsigned_abs(),
                source: Source::Row(row),
                negative: *weight < 0,
            })
            .collect();
        let result = builder.sum(terms);
        AdditionChain { steps: builder.steps, registers: builder.registers, result }
    }

    /// Group operations a column.
    #[cfg(test)]
    fn operations(&self) -> usize {
        let copies = |step: &&Step| matches!(step.action, Action::Copy | Action::CopyNegated);
        self.steps.len() - self.steps.iter().filter(copies).count()
    }

    /// Runs on the columns of `table`, which holds rows of `columns`; writes one sum a column.
    /// Columns from `first` on, as many as `out` takes.
    pub fn run<const N: usize>(
        &self,
        table: &[Points<N>],
        columns: usize,
        first: usize,
        out: &mut [Points<N>],
    ) {
        let mut registers = vec![[RistrettoPoint::identity(); N]; self.registers * BLOCK];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let width = out.len();
            let start = first + block * BLOCK;
            for step in &self.steps {
                for lane in 0..width {
                    let from = match step.from {
                        Source::Row(row) => table[row * columns + start + lane],
                        Source::Register(register) => registers[register * BLOCK + lane],
                    };
                    apply(step.action, &mut registers[step.to * BLOCK + lane], &from);
                }
            }
            match self.result {
                Some(result) => out.copy_from_slice(&registers[result * BLOCK..][..width]),
                None => out.fill([RistrettoPoint::identity(); N]),
            }
        }
    }
}

fn apply<const N: usize>(action: Action, to: &mut Points<N>, from: &Points<N>) {
    let pairs = to.iter_mut().zip(from);
    match action {
        Action::Copy => pairs.for_each(|(to, from)| *to = *from),
        Action::CopyNegated => pairs.for_each(|(to, from)| *to = -from),
        Action::Add => pairs.for_each(|(to, from)| *to += from),
        Action::Subtract => pairs.for_each(|(to, from)| *to -= from),
        Action::Double => pairs.for_each(|(to, from)| *to = from + from),
    }
}

#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    registers: usize,
    free: Vec<usize>,
}

impl Builder {
    fn register(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.registers += 1;
            self.registers - 1
        })
    }

    fn release(&mut self, terms: &[Term]) {
        self.free.extend(terms.iter().filter_map(|term| match term.source {
            Source::Register(register) => Some(register),
            Source::Row(_) => None,
        }));
    }

    fn step(&mut self, action: Action, to: usize, from: Source) {
        self.steps.push(Step { action, to, from });
    }

    /// A register that starts as `term`.
    fn copy(&mut self, term: Term) -> usize {
        let to = self.register();
        let action = if term.negative { Action::CopyNegated } else { Action::Copy };
        self.step(action, to, term.source);
        to
    }

    fn add(&mut self, to: usize, term: Term) {
        let action = if term.negative { Action::Subtract } else { Action::Add };
        self.step(action, to, term.source);
    }

    fn sum(&mut self, mut terms: Vec<Term>) -> Option<usize> {
        loop {
            terms.sort_unstable_by_key(|term| Reverse(term.weight));
            match terms.as_slice() {
                [] => return None,
                [last] => return Some(self.multiple(*last)),
                [first, second, ..] if first.weight / 4 >= second.weight => self.halve(&mut terms),
                _ => terms = self.prefixes(&terms),
            }
        }
    }

    /// One step of the formula above: from weights to their gaps.
    fn prefixes(&mut self, terms: &[Term]) -> Vec<Term> {
        let mut sums: HashMap<u64, usize> = HashMap::new();
        let prefix = self.copy(terms[0]);
        for (index, term) in terms.iter().enumerate() {
            if index > 0 {
                self.add(prefix, *term);
            }
            let gap = term.weight - terms.get(index + 1).map_or(0, |next| next.weight);
            let source = Source::Register(prefix);
            if let Some(sum) = sums.get(&gap).filter(|_| gap > 0) {
                self.step(Action::Add, *sum, source);
            } else if gap > 0 {
                let sum = self.copy(Term { weight: gap, source, negative: false });
                sums.insert(gap, sum);
            }
        }
        self.release(terms);
        self.free.push(prefix);
        let term = |(weight, sum)| Term { weight, source: Source::Register(sum), negative: false };
        sums.into_iter().map(term).collect()
    }

    /// Doubles the point of the first weight and halves the weight until it is near the second;
    /// what is lost in halving is a term of weight one.
    fn halve(&mut self, terms: &mut Vec<Term>) {
        let first = terms[0];
        let target = 2 * terms[1].weight;
        let point = self.copy(first);
        self.release(&terms[..1]);
        let source = Source::Register(point);
        let (mut weight, mut ones) = (first.weight, None);
        while weight >= target {
            if weight & 1 == 1 {
                let term = Term { weight: 1, source, negative: false };
                match ones {
                    Some(ones) => self.add(ones, term),
                    None => ones = Some(self.copy(term)),
                }
            }
            self.step(Action::Double, point, source);
            weight >>= 1;
        }
        terms[0] = Term { weight, source, negative: false };
        terms.extend(ones.map(|ones| Term {
            weight: 1,
            source: Source::Register(ones),
            negative: false,
        }));
    }

    /// A single term: doubled for every bit, added where the bit is set.
    fn multiple(&mut self, term: Term) -> usize {
        let result = self.copy(term);
        for bit in (0..term.weight.ilog2()).rev() {
            self.step(Action::Double, result, Source::Register(result));
            if term.weight >> bit & 1 == 1 {
                self.add(result, term);
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::Scalar;
    use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
    use proptest::prelude::*;

    /// Runs the program on multiples of the base point: `factors` in rows of `columns`.
    fn check(weights: &[i64], columns: usize) {
        let factor = |index: usize| Scalar::from(index as u64 * 7919 + 3);
        let table: Vec<Points<2>> = (0..weights.len() * columns)
            .map(|index| [G * factor(index), G * (factor(index) + Scalar::ONE)])
            .collect();
        let program = AdditionChain::new(weights);
        let mut out = vec![[G; 2]; columns];
        let (head, tail) = out.split_at_mut(columns / 3);
        program.run(&table, columns, 0, head);
        program.run(&table, columns, columns / 3, tail);
        for (column, sums) in out.iter().enumerate() {
            let mut expected = [Scalar::ZERO; 2];
            for (row, &weight) in weights.iter().enumerate() {
                let magnitude = Scalar::from(weight.unsigned_abs());
                let weight = if weight < 0 { -magnitude } else { magnitude };
                expected[0] += weight * factor(row * columns + column);
                expected[1] += weight * (factor(row * columns + column) + Scalar::ONE);
            }
            assert_eq!(*sums, expected.map(|scalar| G * scalar), "{weights:?}");
        }
    }

    #[test]
    fn edge_weights_give_exact_sums() {
        check(&[], 2);
        check(&[0, 0], 5);
        check(&[i64::MIN], 1);
        check(&[i64::MAX, i64::MIN, -1, 1], 3);
        check(&[1 << 62, 3, -3, 3], 2);
        check(&[5, 5, -5, 5, 0, 5], 9);
        check(&(0..40).map(|bit| 1 << bit).collect::<Vec<i64>>(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn sums_are_exact(
            weights in prop::collection::vec(-2047i64..2048, 0..60),
            wide in prop::collection::vec(any::<i64>(), 0..6),
            columns in 1usize..7,
        ) {
            let all: Vec<i64> = weights.into_iter().chain(wide).collect();
            check(&all, columns);
        }
    }

    #[test]
    fn twelve_bits_take_two_additions_a_row() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64 % 2048 - (state >> 20 & 1) as i64 * 2047
        };
        let weights: Vec<i64> = (0..512).map(|_| draw()).collect();
        let operations = AdditionChain::new(&weights).operations();
        assert!(operations < 2 * 512, "{operations}");
    }

    #[test]
    fn no_weights_make_a_long_program() {
        // The largest weight shrinks by a quarter a level: 64-bit weights have at most 152 levels.
        let doubling: Vec<i64> = (0..63).map(|bit| 1 << bit).collect();
        let fibonacci: Vec<i64> =
            std::iter::successors(Some((1i64, 2i64)), |(a, b)| Some((*b, a.checked_add(*b)?)))
                .map(|(a, _)| a)
                .collect();
        for weights in [doubling, fibonacci] {
            let operations = AdditionChain::new(&weights).operations();
            assert!(operations < 64 * weights.len(), "{operations} for {}", weights.len());
        }
    }
}
