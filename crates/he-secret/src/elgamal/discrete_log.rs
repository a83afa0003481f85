//! Finds the integer of a short multiple of the base point. Owner only.
//!
//! Baby steps and giant steps, on x coordinates: `P` and `−P` share one, up to its sign, so a table
//! of `1 … s` answers for `−s … s`. A giant step is a multiple of `2 s + 1`. The sum and the
//! difference of two points share their denominators and a batch of both shares one inversion
//! ([`Fan`]), so a step takes six field multiplications.
//!
//! An encoding of ristretto255 stands for four points that differ by points of order four. Four
//! times any of them is one and the same point, and it is these that are compared.

use std::sync::OnceLock;

use ciphervec_arith::curve25519::{Fan, Field, Point};
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED;
use curve25519_dalek::ristretto::RistrettoPoint;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::MESSAGE_BITS;
use super::inner::{message_point, range};
use crate::additive::Messages;
use crate::error::{Error, Result};

/// Neighbours of a centre on each side, which share one inversion.
const REACH: usize = 256;
const SPAN: usize = 2 * REACH + 1;
/// Centres of baby steps, and the largest baby step.
const CENTRES: usize = 128;
const BABY_STEPS: usize = SPAN * CENTRES + REACH;
/// Slots are twice as many as baby steps, or more.
const SLOTS: usize = 1 << 17;
const _: () = assert!(SLOTS > BABY_STEPS + BABY_STEPS / 2 && BABY_STEPS < (1 << INDEX_BITS) - 1);
/// A slot holds a step plus one in so many bits, and bits of its coordinate above.
const INDEX_BITS: u32 = 17;

/// The table of baby steps: half a megabyte, made once in some ten milliseconds, good for every key
/// and every bound.
///
/// A search looks at 513 giant steps at a time, nearest to zero first, which covers `|m| < 2^25` at
/// once. So its time tells in which multiple of 2^26 the message lies, and nothing else about it.
pub struct DiscreteLog {
    slots: Vec<u32>,
    giants: Fan,
    /// From one centre of giant steps to the next.
    stride: Point,
}

/// What one search after the other needs.
#[derive(Default)]
struct Scratch {
    around: Vec<(Field, Field)>,
}

impl DiscreteLog {
    /// The table of this process, made when it is first asked for.
    pub fn shared() -> &'static DiscreteLog {
        static TABLE: OnceLock<DiscreteLog> = OnceLock::new();
        TABLE.get_or_init(DiscreteLog::new)
    }

    fn new() -> Self {
        let base = Point::from_ristretto(&RISTRETTO_BASEPOINT_COMPRESSED.0)
            .unwrap_or(Point::IDENTITY)
            .quadruple();
        let babies = Fan::new(base, REACH);
        let span = width(&babies, base);
        let mut table = DiscreteLog {
            slots: vec![0; SLOTS],
            giants: Fan::new(span, 1),
            stride: Point::IDENTITY,
        };
        table.insert(Point::IDENTITY.x, 0);
        let mut around = Vec::new();
        let mut centre = Point::IDENTITY;
        for index in 0..=CENTRES {
            let middle = index * SPAN;
            babies.around(centre, &mut around);
            if index > 0 {
                table.insert(centre.x, middle);
            }
            for (offset, (above, below)) in (1..).zip(&around) {
                table.insert(*above, middle + offset);
                if index > 0 {
                    table.insert(*below, middle - offset);
                }
            }
            centre = centre.plus(span);
        }
        // The centre has gone one past the last: span · (CENTRES + 1) = (BABY_STEPS + REACH + 1)
        // base.
        let largest = centre.plus(babies.multiple(REACH).negated()).plus(base.negated());
        let giant = largest.plus(largest).plus(base);
        table.giants = Fan::new(giant, REACH);
        table.stride = width(&table.giants, giant);
        table
    }

    fn insert(&mut self, x: Field, step: usize) {
        let word = x.even_word();
        let mut slot = slot(word);
        while self.slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = tag(word) | (step as u32 + 1);
    }

    /// Steps whose coordinate may be `x`.
    fn steps(&self, x: Field) -> impl Iterator<Item = i64> {
        let word = x.even_word();
        let tag = tag(word);
        (slot(word)..)
            .map(|slot| self.slots[slot % SLOTS])
            .take_while(|entry| *entry != 0)
            .filter(move |entry| entry >> INDEX_BITS == tag >> INDEX_BITS)
            .map(|entry| i64::from(entry & ((1 << INDEX_BITS) - 1)) - 1)
    }

    /// The `m` with `|m| < 2^(bits - 1)` and `point = m G`, if there is one.
    pub fn of(&self, point: &RistrettoPoint, bits: u32) -> Option<i64> {
        self.search(point, bits, &mut Scratch::default())
    }

    fn search(&self, point: &RistrettoPoint, bits: u32, scratch: &mut Scratch) -> Option<i64> {
        let bound = (1i64 << (bits.clamp(1, MESSAGE_BITS) - 1)) - 1;
        let giant = 2 * BABY_STEPS as i64 + 1;
        let reach = REACH as i64 * giant + BABY_STEPS as i64;
        let stride = SPAN as i64 * giant;
        let target = Point::from_ristretto(&point.compress().0)?.quadruple();
        let (mut up, mut down) = (target, target);
        for centre in (0..).map(|index| index * stride).take_while(|centre| centre - reach <= bound)
        {
            // target − centre lies near zero if the message lies near the centre.
            let found = self.near(point, up, centre, bound, scratch);
            if found.is_some() || centre == 0 {
                if found.is_some() {
                    return found;
                }
            } else if let Some(found) = self.near(point, down, -centre, bound, scratch) {
                return Some(found);
            }
            up = up.plus(self.stride.negated());
            down = down.plus(self.stride);
        }
        None
    }

    /// The message, if it is within 256 giant steps and a baby step of `centre`; `target` is it
    /// less the centre.
    fn near(
        &self,
        point: &RistrettoPoint,
        target: Point,
        centre: i64,
        bound: i64,
        scratch: &mut Scratch,
    ) -> Option<i64> {
        let giant = 2 * BABY_STEPS as i64 + 1;
        self.giants.around(target, &mut scratch.around);
        // target + j giants has a baby step's x: the message is centre − j giants ± step.
        let sides = (1i64..)
            .zip(&scratch.around)
            .flat_map(|(j, (above, below))| [(j, *above), (-j, *below)]);
        let mut found = None;
        for (j, x) in sides.chain([(0, target.x)]) {
            for step in self.steps(x) {
                for message in [centre - j * giant + step, centre - j * giant - step] {
                    // A tag of 15 bits is met by chance now and then: the point itself decides.
                    if message.abs() <= bound && message_point(message) == *point {
                        found = Some(message);
                    }
                }
            }
        }
        found
    }

    /// The logarithms of the points that `open` makes of `sealed`, on all threads of the pool.
    ///
    /// # Errors
    /// [`Error::Bound`] if one is `2^(bits - 1)` or more in absolute value; [`Error::Range`] for
    /// more than [`MESSAGE_BITS`].
    pub(super) fn of_all<T: Sync>(
        &self,
        sealed: &[T],
        open: impl Fn(&T) -> RistrettoPoint + Sync,
        bits: u32,
    ) -> Result<Messages> {
        if !(1..=MESSAGE_BITS).contains(&bits) {
            return Err(range(
                "the bits of an ElGamal result",
                format!("1 to {MESSAGE_BITS}"),
                bits,
            ));
        }
        let find = |scratch: &mut Scratch, sealed: &T| {
            self.search(&open(sealed), bits, scratch).ok_or(Error::Bound)
        };
        let values: Result<Vec<i64>> = sealed.par_iter().map_init(Scratch::default, find).collect();
        Ok(Messages::from_i64(&Zeroizing::new(values?)))
    }
}

/// 513 times the step of a fan.
fn width(fan: &Fan, step: Point) -> Point {
    let last = fan.multiple(fan.count());
    last.plus(last).plus(step)
}

fn slot(word: u64) -> usize {
    // The word is even.
    (word >> 1) as usize % SLOTS
}

fn tag(word: u64) -> u32 {
    (word >> 32) as u32 >> INDEX_BITS << INDEX_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;

    #[test]
    fn every_kind_of_step_is_found() {
        let table = DiscreteLog::shared();
        let (baby, giant) = (BABY_STEPS as i64, 2 * BABY_STEPS as i64 + 1);
        let reach = REACH as i64 * giant + baby;
        let edges = [
            0,
            1,
            255,
            256,
            257,
            513,
            770,
            baby - 1,
            baby,
            baby + 1,
            giant,
            giant + 1,
            reach,
            reach + 1,
        ];
        let bound = (1i64 << (MESSAGE_BITS - 1)) - 1;
        let far = [3 * reach + 7, bound - 1, bound];
        for message in edges.into_iter().chain(far).flat_map(|m| [m, -m]) {
            assert_eq!(table.of(&message_point(message), MESSAGE_BITS), Some(message));
        }
    }

    #[test]
    fn all_baby_steps_are_in_the_table_once() {
        let table = DiscreteLog::shared();
        let mut steps: Vec<u32> = table
            .slots
            .iter()
            .filter(|entry| **entry != 0)
            .map(|entry| (entry & ((1 << INDEX_BITS) - 1)) - 1)
            .collect();
        steps.sort_unstable();
        assert!(steps.into_iter().eq(0..=BABY_STEPS as u32));
    }

    #[test]
    fn bounds_are_exact_and_strangers_are_not_found() {
        let table = DiscreteLog::shared();
        for bits in [1, 2, 8, 17, 26, 27] {
            let beyond = 1i64 << (bits - 1);
            for message in [beyond, -beyond] {
                assert_eq!(table.of(&message_point(message), bits), None, "{message}");
                let inside = message - message.signum();
                assert_eq!(table.of(&message_point(inside), bits), Some(inside));
            }
        }
        let stranger = RistrettoPoint::from_uniform_bytes(&[7; 64]);
        assert_eq!(table.of(&stranger, 26), None);
        // One past the largest message.
        let beyond = message_point((1 << (MESSAGE_BITS - 1)) - 1) + RISTRETTO_BASEPOINT_POINT;
        assert_eq!(table.of(&beyond, MESSAGE_BITS), None);
    }
}
