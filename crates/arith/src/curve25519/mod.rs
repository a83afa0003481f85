//! Points of edwards25519 in affine coordinates, decoded from ristretto255, for the key owner's
//! search for a discrete logarithm.
//!
//! A group library keeps its coordinates to itself. A discrete logarithm is found by comparing
//! millions of them, so here is what that takes and no more: one decoding, sums of points with the
//! inversion shared by all of them, and [`Fan`], the x coordinates of many neighbours of a point at
//! once. Keys and ciphertexts never come here.

mod field;

pub use field::Field;

/// A point `(x, y)` of `-x² + y² = 1 + d x² y²` over the field of 2^255 − 19.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The first coordinate; the neutral element has 0.
    pub x: Field,
    /// The second coordinate; the neutral element has 1.
    pub y: Field,
}

impl Point {
    /// The neutral element.
    pub const IDENTITY: Point = Point { x: Field::ZERO, y: Field::ONE };

    /// One of the four points that a canonical ristretto255 encoding stands for (RFC 9496, section
    /// 4.3.1); they differ by points of order 4.
    pub fn from_ristretto(bytes: &[u8; 32]) -> Option<Point> {
        let s = Field::from_bytes(bytes).filter(|s| !s.is_negative())?;
        let square = s.square();
        let u1 = Field::ONE - square;
        let u2 = Field::ONE + square;
        let u2_square = u2.square();
        let v = -(Field::D * u1.square()) - u2_square;
        let root = (v * u2_square).inverse_root()?;
        let den_x = root * u2;
        let den_y = root * den_x * v;
        let x = ((s + s) * den_x).abs();
        let y = u1 * den_y;
        (!(x * y).is_negative() && y != Field::ZERO).then_some(Point { x, y })
    }

    /// Four times the point: the same for all the points that an encoding stands for.
    pub fn quadruple(self) -> Point {
        // Doubling in projective coordinates, "dbl-2008-bbjlp" of the Explicit-Formulas Database at
        // a = -1.
        let (mut x, mut y, mut z) = (self.x, self.y, Field::ONE);
        for _ in 0..2 {
            let (xx, yy) = (x.square(), y.square());
            let cross = (x + y).square() - xx - yy;
            let f = yy - xx;
            let j = f - z.square() - z.square();
            (x, y, z) = (cross * j, -(f * (xx + yy)), f * j);
        }
        let inverse = z.invert();
        Point { x: x * inverse, y: y * inverse }
    }

    /// Every one of `points` plus `self`, at one inversion.
    pub fn plus_each(self, points: &[Point]) -> Vec<Point> {
        let shift = Shift::new(self);
        let mut inverses: Vec<Field> =
            points.iter().map(|p| shift.denominator(p.x * p.y)).collect();
        Field::invert_all(&mut inverses);
        let sum = |(point, inverse): (&Point, Field)| {
            let k = shift.k(point.x * point.y);
            let x = shift.at.x * point.y + shift.at.y * point.x;
            let y = shift.at.y * point.y + shift.at.x * point.x;
            Point { x: x * (Field::ONE - k) * inverse, y: y * (Field::ONE + k) * inverse }
        };
        points.iter().zip(inverses).map(sum).collect()
    }

    /// The sum of two points.
    #[must_use]
    pub fn plus(self, other: Point) -> Point {
        self.plus_each(&[other])[0]
    }

    /// The point with the opposite sign.
    #[must_use]
    pub fn negated(self) -> Point {
        Point { x: -self.x, y: self.y }
    }
}

/// A point to be added to many: its coordinates and `d x y`.
struct Shift {
    at: Point,
    dxy: Field,
}

impl Shift {
    fn new(at: Point) -> Self {
        Shift { at, dxy: Field::D * at.x * at.y }
    }

    /// `k = d x₁ x₂ y₁ y₂`; `1 + k` and `1 − k` divide the coordinates of the sum. Neither is ever
    /// zero.
    fn k(&self, xy: Field) -> Field {
        self.dxy * xy
    }

    fn denominator(&self, xy: Field) -> Field {
        Field::ONE - self.k(xy).square()
    }
}

/// Multiples `1 … count` of a point, ready to be added to and subtracted from another point.
pub struct Fan {
    points: Vec<(Point, Field)>,
}

impl Fan {
    /// The first `count` multiples of `step`.
    pub fn new(step: Point, count: usize) -> Self {
        let mut points = vec![step];
        while points.len() < count {
            let last = points[points.len() - 1];
            let wanted = points.len().min(count - points.len());
            points.extend(last.plus_each(&points[..wanted]));
        }
        points.truncate(count);
        Fan { points: points.into_iter().map(|p| (p, p.x * p.y)).collect() }
    }

    /// How many multiples there are.
    pub fn count(&self) -> usize {
        self.points.len()
    }

    /// Multiple `index` of the step, from 1.
    ///
    /// # Panics
    /// If there is no such multiple.
    pub fn multiple(&self, index: usize) -> Point {
        self.points[index - 1].0
    }

    /// The x coordinates of `center ± 1 step`, `center ± 2 steps`, …: the sum and the difference of
    /// each multiple.
    ///
    /// Sum and difference share their denominators, `(1 + k)(1 − k)`, so a coordinate costs 5.5
    /// multiplications.
    pub fn around(&self, center: Point, out: &mut Vec<(Field, Field)>) {
        let shift = Shift::new(center);
        let mut inverses: Vec<Field> =
            self.points.iter().map(|(_, xy)| shift.denominator(*xy)).collect();
        Field::invert_all(&mut inverses);
        out.clear();
        out.extend(self.points.iter().zip(inverses).map(|((point, xy), inverse)| {
            let k = shift.k(*xy);
            let (a, b) = (center.x * point.y, center.y * point.x);
            let sum = (Field::ONE - k) * inverse * (a + b);
            let difference = (Field::ONE + k) * inverse * (a - b);
            (sum, difference)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base point of RFC 8032, section 5.1: `y = 4/5` and the even one of the two x.
    fn base() -> Point {
        let y = Field::from(4) * Field::from(5).invert();
        let square = y.square();
        let ratio = (square - Field::ONE) * (Field::D * square + Field::ONE).invert();
        let x = (ratio * ratio.inverse_root().unwrap()).abs();
        Point { x, y }
    }

    fn on_curve(p: Point) -> bool {
        let (xx, yy) = (p.x.square(), p.y.square());
        yy - xx == Field::ONE + Field::D * xx * yy
    }

    #[test]
    fn the_base_point_is_the_one_of_rfc_8032() {
        let hex =
            |bytes: [u8; 32]| bytes.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
        let point = base();
        assert!(on_curve(point));
        let x = "216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a";
        let y = "6666666666666666666666666666666666666666666666666666666666666658";
        assert_eq!(
            (hex(point.x.to_bytes()), hex(point.y.to_bytes())),
            (x.to_owned(), y.to_owned())
        );
    }

    #[test]
    fn sums_obey_the_group_law() {
        let fan = Fan::new(base(), 37);
        assert_eq!(fan.count(), 37);
        for index in 1..=37 {
            assert!(on_curve(fan.multiple(index)));
        }
        assert_eq!(fan.multiple(4), base().quadruple());
        assert_eq!(fan.multiple(9).plus(fan.multiple(28)), fan.multiple(37));
        assert_eq!(fan.multiple(9).plus(fan.multiple(9).negated()), Point::IDENTITY);
        assert_eq!(fan.multiple(9).plus(Point::IDENTITY), fan.multiple(9));
        let mut around = Vec::new();
        fan.around(fan.multiple(11), &mut around);
        for (index, (sum, difference)) in around.into_iter().enumerate() {
            let step = fan.multiple(index + 1);
            assert_eq!(sum, fan.multiple(11).plus(step).x);
            assert_eq!(difference, fan.multiple(11).plus(step.negated()).x);
        }
    }

    #[test]
    fn encodings_are_those_of_rfc_9496() {
        let text = include_str!("../../../../vectors/ristretto255.txt");
        let points: Vec<Option<Point>> = text
            .lines()
            .filter(|line| line.len() == 64)
            .map(|line| {
                let byte = |at: usize| u8::from_str_radix(&line[2 * at..2 * at + 2], 16).unwrap();
                Point::from_ristretto(&std::array::from_fn(byte))
            })
            .collect();
        assert_eq!(points.len(), 16 + 29);
        let (multiples, invalid) = points.split_at(16);
        assert!(invalid.iter().all(Option::is_none));
        assert_eq!(multiples[0].unwrap().quadruple(), Point::IDENTITY);
        let fan = Fan::new(base().quadruple(), 15);
        for (index, point) in multiples.iter().enumerate().skip(1) {
            assert!(on_curve(point.unwrap()));
            assert_eq!(point.unwrap().quadruple(), fan.multiple(index), "{index}");
        }
    }
}
