//! Origins: the independent errors that the error of a ciphertext is made of. Two errors add up by
//! absolute values where they share one, and by squares where they share none. Both sides.
//!
//! Of every origin there is a bound on what it is multiplied by on the way, which messages decide.
//! Errors in different slots are independent, so that a ciphertext and its rotation share nothing:
//! an origin is known with how far it was rotated. What gets too long is taken together, by the
//! triangle inequality for standard deviations, which holds whatever depends on what.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::super::tail::Deviation;

/// Most parts of an error: with one number for all slots, and with one for each.
const MOST: usize = 2048;
const MOST_LOCAL: usize = 12;
/// Parts from which on those of one ciphertext alone are taken together, and such as are local.
const MANY: usize = 24;
const MANY_LOCAL: usize = 4;
/// Rotated by any number of slots.
const EVERY: u32 = u32::MAX;
/// Standard deviations whose ratio is below this are one.
const ALIKE: f64 = 1.02;

/// An independent error: another number in every slot, all with one distribution.
#[derive(Debug)]
pub(super) struct Origin {
    number: u64,
    /// The part of its variance that a value of the secret key is a factor of.
    keyed: f64,
}

/// Numbers for slots, none negative.
#[derive(Clone, Debug)]
enum Size {
    All(f64),
    Each(Rc<Vec<f64>>),
}

impl Size {
    fn of(each: Vec<f64>) -> Self {
        let (least, most) = extremes(&each);
        if most <= ALIKE * least { Size::All(most) } else { Size::Each(Rc::new(each)) }
    }

    fn largest(&self) -> f64 {
        match self {
            Size::All(one) => *one,
            Size::Each(each) => extremes(each).1,
        }
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Size::All(one) => Size::All(f(*one)),
            Size::Each(each) => Size::of(each.iter().map(|&one| f(one)).collect()),
        }
    }

    fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Size::All(a), Size::All(b)) => Size::All(f(*a, *b)),
            (Size::All(a), Size::Each(b)) => Size::of(b.iter().map(|&b| f(*a, b)).collect()),
            (Size::Each(a), Size::All(b)) => Size::of(a.iter().map(|&a| f(a, *b)).collect()),
            (Size::Each(a), Size::Each(b)) => {
                Size::of(a.iter().zip(&**b).map(|(&a, &b)| f(a, b)).collect())
            }
        }
    }

    fn plus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    /// Adds a multiple of the square, where the numbers of slots are if nobody else reads them.
    fn add_square(&mut self, other: &Self, times: f64) {
        let square = |one: f64| times * one * one;
        let Size::Each(sums) = self else {
            *self = self.zip(other, |sum, one| sum + square(one));
            return;
        };
        let sums = Rc::make_mut(sums);
        match other {
            Size::All(one) => sums.iter_mut().for_each(|sum| *sum += square(*one)),
            Size::Each(each) => {
                sums.iter_mut().zip(&**each).for_each(|(sum, one)| *sum += square(*one));
            }
        }
        let (least, most) = extremes(sums);
        if most <= ALIKE * least {
            *self = Size::All(most);
        }
    }

    fn root(&self) -> Self {
        self.map(f64::sqrt)
    }

    fn is_local(&self) -> bool {
        matches!(self, Size::Each(_))
    }
}

/// The least and the largest of numbers that are not below 0, eight side by side.
fn extremes(each: &[f64]) -> (f64, f64) {
    let (mut least, mut most) = ([f64::INFINITY; 8], [0.0; 8]);
    let mut take = |place: usize, one: f64| {
        least[place] = if one < least[place] { one } else { least[place] };
        most[place] = if one > most[place] { one } else { most[place] };
    };
    let eights = each.chunks_exact(8);
    eights.remainder().iter().for_each(|&one| take(0, one));
    for eight in eights {
        (0..8).for_each(|place| take(place, eight[place]));
    }
    (least.into_iter().fold(f64::INFINITY, f64::min), most.into_iter().fold(0.0, f64::max))
}

/// What an origin has in an error.
#[derive(Clone, Debug)]
struct Part {
    origin: Rc<Origin>,
    shift: u32,
    /// The standard deviation.
    size: Size,
}

impl Part {
    fn place(&self) -> (u64, u32) {
        (self.origin.number, self.shift)
    }
}

/// An error in the slots of a ciphertext.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    /// By origin, and by how far it was rotated.
    parts: Vec<Part>,
    /// The standard deviation of what may depend on anything.
    rest: Size,
}

/// Makes origins.
#[derive(Debug, Default)]
pub(super) struct Maker {
    made: Cell<u64>,
    by_name: RefCell<HashMap<u64, Weak<Origin>>>,
}

impl Maker {
    pub fn origin(&self, keyed: f64) -> Rc<Origin> {
        let number = self.made.replace(self.made.get() + 1);
        Rc::new(Origin { number, keyed })
    }

    /// The origin of that name. None if there was one which nothing holds any more, perhaps because
    /// it became a part of another.
    pub fn named(&self, name: u64, keyed: f64) -> Option<Rc<Origin>> {
        let mut by_name = self.by_name.borrow_mut();
        match by_name.get(&name) {
            Some(made) => made.upgrade(),
            None => {
                let origin = self.origin(keyed);
                by_name.insert(name, Rc::downgrade(&origin));
                Some(origin)
            }
        }
    }
}

impl Origins {
    /// No error.
    pub fn none() -> Self {
        Origins { parts: Vec::new(), rest: Size::All(0.0) }
    }

    /// An independent one.
    pub fn new(origin: Rc<Origin>, std: f64) -> Self {
        let size = Size::All(std);
        Origins { parts: vec![Part { origin, shift: 0, size }], rest: Size::All(0.0) }
    }

    /// One that is the same wherever it is rotated to.
    pub fn everywhere(origin: Rc<Origin>, std: f64) -> Self {
        let size = Size::All(std);
        Origins { parts: vec![Part { origin, shift: EVERY, size }], rest: Size::All(0.0) }
    }

    /// One that may depend on anything.
    pub fn unknown(std: f64) -> Self {
        Origins { parts: Vec::new(), rest: Size::All(std) }
    }

    /// The error of a sum or a difference.
    pub fn plus(&self, other: &Self) -> Self {
        let mut parts = Vec::with_capacity(self.parts.len() + other.parts.len());
        let (mut mine, mut theirs) = (self.parts.iter().peekable(), other.parts.iter().peekable());
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(_), None) => core::cmp::Ordering::Less,
                (None, Some(_)) => core::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.place().cmp(&b.place()),
            };
            let next = if order.is_gt() { theirs.next() } else { mine.next() };
            let Some(next) = next else { break };
            let mut next = next.clone();
            if order.is_eq()
                && let Some(other) = theirs.next()
            {
                next.size = next.size.plus(&other.size);
            }
            parts.push(next);
        }
        Origins { parts, rest: self.rest.plus(&other.rest) }
    }

    /// Times a number.
    pub fn times(&self, factor: f64) -> Self {
        self.sized(|size| size.map(|one| one * factor.abs()))
    }

    /// Times a number in each slot.
    pub fn times_each(&self, factors: &[f64]) -> Self {
        let most = factors.iter().fold(0.0, |most: f64, one| most.max(one.abs()));
        if factors.iter().all(|one| one.abs() * ALIKE >= most) {
            return self.times(most);
        }
        self.sized(|size| match size {
            Size::All(one) => Size::of(factors.iter().map(|x| one * x.abs()).collect()),
            Size::Each(each) => {
                Size::of(factors.iter().zip(&**each).map(|(x, one)| one * x.abs()).collect())
            }
        })
    }

    /// Rotated by so many of `slots`.
    pub fn rotated(&self, steps: i64, slots: usize) -> Self {
        let steps = steps.rem_euclid(slots as i64) as usize;
        let mut rotated = self.sized(|size| match size {
            Size::All(one) => Size::All(*one),
            Size::Each(each) => {
                let mut each = each.to_vec();
                each.rotate_left(steps);
                Size::Each(Rc::new(each))
            }
        });
        for part in rotated.parts.iter_mut().filter(|part| part.shift != EVERY) {
            part.shift = ((part.shift as usize + steps) % slots) as u32;
        }
        rotated.parts.sort_by_key(Part::place);
        rotated
    }

    fn sized(&self, f: impl Fn(&Size) -> Size) -> Self {
        let sized = |part: &Part| Part { size: f(&part.size), ..part.clone() };
        Origins { parts: self.parts.iter().map(sized).collect(), rest: f(&self.rest) }
    }

    fn by_origin(&self) -> impl Iterator<Item = &[Part]> {
        self.parts.chunk_by(|a, b| a.origin.number == b.origin.number)
    }

    /// The variance in slots, and that part of it which the key is a factor of.
    fn variances(&self) -> [Size; 2] {
        let (mut all, mut keyed) = (Size::All(0.0), Size::All(0.0));
        for parts in self.by_origin() {
            let one = norm(parts);
            all.add_square(&one, 1.0);
            if let [Part { origin, .. }, ..] = parts
                && origin.keyed > 0.0
            {
                keyed.add_square(&one, origin.keyed);
            }
        }
        if self.rest.largest() == 0.0 {
            return [all, keyed];
        }
        let whole = all.root().plus(&self.rest).map(|one| one * one);
        [whole.clone(), whole]
    }

    /// The error in the slot where it is largest.
    pub fn deviation(&self) -> Deviation {
        let [all, keyed] = self.variances().map(|one| one.largest());
        Deviation { std: all.sqrt(), keyed: if all > 0.0 { (keyed / all).min(1.0) } else { 0.0 } }
    }

    /// Takes what no other ciphertext has in it together, and what is too long.
    pub fn condense(&mut self, maker: &Maker) {
        if self.is_over(MANY, MANY_LOCAL) {
            self.join_own(maker);
        }
        if self.is_over(MOST, MOST_LOCAL) {
            self.parts = self.by_origin().filter_map(merged).collect();
        }
        if self.is_over(MOST, MOST_LOCAL) {
            let [all, _] = self.variances();
            *self = Origins { parts: Vec::new(), rest: all.root() };
        }
    }

    /// Takes all together, as if no other ciphertext had anything of it.
    pub fn forget(&mut self, maker: &Maker) {
        let [all, _] = self.variances();
        let origin = maker.origin(self.deviation().keyed);
        let part = Part { origin, shift: 0, size: all.root() };
        *self = Origins { parts: vec![part], rest: Size::All(0.0) };
    }

    fn is_over(&self, most: usize, most_local: usize) -> bool {
        let local = self.parts.iter().filter(|part| part.size.is_local()).count();
        self.parts.len() > most || local > most_local
    }

    /// One origin for those that nothing else holds. Whatever it is multiplied by and rotated to from
    /// now on, the root of the squares of what they had at one shift stands for all of them.
    fn join_own(&mut self, maker: &Maker) {
        let own = |parts: &&[Part]| {
            parts.first().is_some_and(|part| Rc::strong_count(&part.origin) == parts.len())
        };
        if self.by_origin().filter(own).count() < 2 {
            return;
        }
        let mut sums: std::collections::BTreeMap<u32, (Size, f64, f64)> = Default::default();
        for part in self.by_origin().filter(own).flatten() {
            let (square, keyed) = (part.size.largest().powi(2), part.origin.keyed);
            let zero = (Size::All(0.0), 0.0, 0.0);
            let (sum, all, with_key) = sums.entry(part.shift).or_insert(zero);
            sum.add_square(&part.size, 1.0);
            // Where slots differ, so does what the key has in them.
            let keyed = if part.size.is_local() && keyed > 0.0 { 1.0 } else { keyed };
            *all += square;
            *with_key += keyed * square;
        }
        let keyed = sums.values().map(|(_, all, keyed)| if *all > 0.0 { keyed / all } else { 0.0 });
        let origin = maker.origin(keyed.fold(0.0, f64::max).min(1.0));
        let joined = sums.into_iter().map(|(shift, (sum, ..))| Part {
            origin: origin.clone(),
            shift,
            size: sum.root(),
        });
        let shared = self.by_origin().filter(|parts| !own(parts)).flatten().cloned();
        // The newest origin has the highest number.
        self.parts = shared.collect::<Vec<_>>().into_iter().chain(joined).collect();
    }
}

/// The standard deviation that one origin leads to.
fn norm(parts: &[Part]) -> Size {
    if let [one] = parts {
        return one.size.clone();
    }
    let (apart, every): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.shift != EVERY);
    let mut squares = Size::All(0.0);
    apart.iter().for_each(|part| squares.add_square(&part.size, 1.0));
    every.iter().fold(squares.root(), |sum, part| sum.plus(&part.size))
}

/// What one origin has at any shift.
fn merged(parts: &[Part]) -> Option<Part> {
    let first = parts.first()?;
    Some(match parts {
        [one] => one.clone(),
        _ => Part { origin: first.origin.clone(), shift: EVERY, size: norm(parts) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(maker: &Maker, std: f64) -> Origins {
        Origins::new(maker.origin(0.0), std)
    }

    fn std(a: &Origins) -> f64 {
        a.deviation().std
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-12
    }

    #[test]
    fn what_is_shared_adds_up_and_what_is_not_adds_squares() {
        let maker = Maker::default();
        let (x, y) = (error(&maker, 3.0), error(&maker, 4.0));
        assert!(near(std(&x.plus(&y)), 5.0));
        assert!(near(std(&x.plus(&x)), 6.0));
        // (x + y) + (x + y), and (x + y) + 2x.
        let sum = x.plus(&y);
        assert!(near(std(&sum.plus(&sum)), 10.0));
        assert!(near(std(&sum.plus(&x.times(-2.0))), (81.0f64 + 16.0).sqrt()));
    }

    #[test]
    fn rotations_share_a_slot_only_where_they_meet() {
        let maker = Maker::default();
        let x = error(&maker, 1.0);
        let mut sum = x.clone();
        for step in [1, 2, 4] {
            sum = sum.plus(&sum.rotated(step, 8));
        }
        assert!(near(std(&sum), 8f64.sqrt()));
        // Once around: every slot has all eight, twice.
        assert!(near(std(&sum.plus(&sum.rotated(3, 8))), 2.0 * 8f64.sqrt()));
        // 1, 2, 1.
        let two = x.plus(&x.rotated(1, 8));
        assert!(near(std(&two.plus(&two.rotated(1, 8))), 6f64.sqrt()));
    }

    #[test]
    fn what_is_taken_together_is_never_less() {
        let maker = Maker::default();
        let x = error(&maker, 1.0);
        let mut two = x.plus(&error(&maker, 0.5)).plus(&error(&maker, 2.0));
        let before = std(&two.plus(&two.rotated(1, 8)).plus(&x));
        let whole = std(&two);
        two.join_own(&maker);
        // x is still held, the others by nobody else.
        assert_eq!(two.parts.len(), 2);
        assert!(near(std(&two), whole));
        let after = std(&two.plus(&two.rotated(1, 8)).plus(&x));
        assert!(near(after, before), "{after} {before}");
        drop(x);
        two = two.plus(&two.rotated(1, 8));
        let whole = std(&two);
        two.join_own(&maker);
        assert_eq!(two.parts.len(), 2);
        assert!(near(std(&two), whole));
    }

    #[test]
    fn long_ones_are_bounded_by_the_triangle_inequality() {
        let maker = Maker::default();
        let many: Vec<Origins> = (0..2 * MOST).map(|_| error(&maker, 1.0)).collect();
        let mut sum = many.iter().fold(Origins::none(), |sum, one| sum.plus(one));
        let exact = std(&sum.plus(&sum));
        sum.condense(&maker);
        assert!(sum.parts.is_empty());
        assert!(near(std(&sum.plus(&sum)), exact));
        assert!(std(&sum.plus(&many[0])) >= std(&sum));
        // An origin that was rotated often keeps its name.
        let x = error(&maker, 1.0);
        let mut turns = (0..3000)
            .map(|k| x.rotated(k, 1 << 13))
            .fold(Origins::none(), |sum, one| sum.plus(&one));
        turns.condense(&maker);
        assert_eq!(turns.parts.len(), 1);
        assert!(near(std(&turns.plus(&x)), 3000f64.sqrt() + 1.0));
    }

    #[test]
    fn masks_take_errors_with_them() {
        let maker = Maker::default();
        let mask: Vec<f64> = (0..8).map(|slot| f64::from(u8::from(slot % 4 == 0))).collect();
        let mut spread = error(&maker, 1.0).times_each(&mask);
        for step in [1, 2] {
            spread = spread.plus(&spread.rotated(-step, 8));
        }
        assert!(near(std(&spread), 1.0));
    }

    #[test]
    fn the_key_has_the_part_of_what_it_is_a_factor_of() {
        let maker = Maker::default();
        let sum = error(&maker, 3.0).plus(&Origins::new(maker.origin(1.0), 4.0));
        assert!(near(sum.deviation().keyed, 16.0 / 25.0));
        let rest = Origins { parts: Vec::new(), rest: Size::All(1.0) };
        assert!(near(sum.plus(&rest).deviation().keyed, 1.0));
        assert!(near(std(&sum.plus(&rest)), 6.0));
    }
}
