//! Arrays of a program: their shapes, the numbers that they may hold, and the registers that hold them. Public numbers only.

use super::numbers::{Numbers, elements, range, within};
use super::placement::Placement;
use super::reading::Reading;
use crate::error::{Error, Result};

/// A register's number: those of the inputs' views come first, then every step has the next one.
pub type Register = u32;

/// Most elements of an array.
const MAX_ELEMENTS: u64 = 1 << 26;
/// Longest name, in bytes.
pub const MAX_NAME: usize = 64;
/// Most dimensions of an array.
pub const MAX_DIMENSIONS: usize = 16;

/// One way in which an input stands in registers.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// How many registers it takes.
    pub registers: u32,
    /// Slots hold numbers divided by this.
    pub unit: f64,
    /// Which numbers: the input's, counts of them, or their digits.
    pub reading: Reading,
    /// Where they stand.
    pub placement: Placement,
}

/// An array that comes with every run.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Whether it is no secret: then its numbers are sent as they are, and the server reads them.
    /// Otherwise the key holder encrypts it.
    pub public: bool,
    /// Its shape.
    pub shape: Vec<u32>,
    /// What it may hold.
    pub numbers: Numbers,
    /// How it stands in registers.
    pub views: Vec<View>,
}

impl Input {
    /// Refuses another number of values, and one that the input was not declared to hold.
    ///
    /// # Errors
    /// [`Error::Program`], which says which, and what was declared.
    pub fn check(&self, values: &[f64]) -> Result<()> {
        let refuse = |detail: String| Error::Program { operation: "an input", detail };
        let expected = elements(&self.shape).unwrap_or(0);
        if values.len() as u64 != expected {
            return Err(refuse(format!(
                "{:?} has the shape {:?}, {expected} numbers, got {}",
                self.name,
                self.shape,
                values.len()
            )));
        }
        let Numbers { step, low, high } = self.numbers;
        for (index, &value) in values.iter().enumerate() {
            // A grid that is no power of two is met as closely as doubles meet it.
            let off = if step > 0.0 { (value / step - (value / step).round()).abs() } else { 0.0 };
            if !(low <= value && value <= high && off <= 1e-6) {
                let grid =
                    if step > 0.0 { format!(", multiples of {step}") } else { String::new() };
                return Err(refuse(format!(
                    "{:?} was declared with numbers from {low} to {high}{grid}; element {index} is \
                     {value}. Declare what it may hold and compile again",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// Its registers, view after view, for its values in row-major order.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn scatter(&self, values: &[f64], slots: usize) -> Result<Vec<Vec<f64>>> {
        self.check(values)?;
        let mut registers = Vec::new();
        for view in &self.views {
            let mut scaled = view.reading.of(values, &self.numbers);
            scaled.iter_mut().for_each(|x| *x /= view.unit);
            registers.extend(view.placement.scatter(&scaled, view.registers as usize, slots));
        }
        Ok(registers)
    }

    /// A bound on the absolute value in the slots of a view.
    pub fn magnitude(&self, view: &View) -> f64 {
        let count = view.reading.length(elements(&self.shape).unwrap_or(0));
        let largest = view.reading.magnitude(&self.numbers) / view.unit;
        view.placement.magnitude(largest, count).max(f64::MIN_POSITIVE)
    }
}

/// What the key holder makes of the numbers in the slots of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Decoding {
    /// The numbers themselves, integers rounded.
    Numbers = 0,
    /// True or false.
    Booleans = 1,
    /// The index, along the last axis, of the one that is true.
    OneHot = 2,
    /// The index, along the last axis, of the largest: of the rank that says which number is meant,
    /// where those closer than the gap that was declared have ranks in between.
    Largest = 3,
    /// True, along the last axis, at as many of the largest as the output's numbers go up to, and false
    /// elsewhere; of ranks as well.
    Most = 4,
}

/// An array that the key holder decrypts.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The shape that its slots are read as.
    pub shape: Vec<u32>,
    /// What it may hold.
    pub numbers: Numbers,
    /// Its numbers are those in slots times this.
    pub unit: f64,
    /// The registers that it stands in.
    pub registers: Vec<Register>,
    /// Where its elements stand in them.
    pub placement: Placement,
    /// What is made of them.
    pub decoding: Decoding,
}

/// The values of an output.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Its name.
    pub name: String,
    /// Its shape: that of a one-hot output without its last axis.
    pub shape: Vec<u32>,
    /// What was made of it.
    pub decoding: Decoding,
    /// The values in row-major order.
    pub values: Vec<f64>,
}

/// How far a decrypted integer may be from an integer before it is refused.
const FARTHEST: f64 = 0.45;
/// What the largest of truths in part has to be above.
const LEAST: f64 = 0.25;

impl Output {
    /// Its values in row-major order, for the numbers in the slots of its registers. Those of a
    /// one-hot output have lost the last axis.
    ///
    /// # Errors
    /// [`Error::Unclear`] where a number is not near one that the output can hold: the noise was
    /// larger than the plan allows for, or the server computed something else.
    pub fn gather(&self, registers: &[Vec<f64>], slots: usize) -> Result<Vec<f64>> {
        let count = elements(&self.shape).unwrap_or(0) as usize;
        let mut values = self.placement.gather(registers, count, slots);
        let step = match self.decoding {
            Decoding::Numbers => self.numbers.step,
            Decoding::Largest | Decoding::Most => 0.0,
            Decoding::Booleans | Decoding::OneHot => 1.0,
        };
        for (index, value) in values.iter_mut().enumerate() {
            let exact = *value * self.unit;
            if step == 0.0 {
                *value = exact;
            } else {
                let rounded = (exact / step).round();
                if (exact / step - rounded).abs() > FARTHEST || !exact.is_finite() {
                    return Err(self.refuse(format!(
                        "a multiple of {step} was expected at element {index}, got {exact}"
                    )));
                }
                *value = rounded * step;
            }
            if self.decoding == Decoding::Numbers && !self.within(*value) {
                let Numbers { low, high, .. } = self.numbers;
                return Err(self.refuse(format!(
                    "a number from {low} to {high} was expected at element {index}, got {exact}"
                )));
            }
        }
        match self.decoding {
            Decoding::Numbers => Ok(values),
            Decoding::Booleans => match values.iter().position(|x| *x != 0.0 && *x != 1.0) {
                None => Ok(values),
                Some(index) => Err(self.refuse(format!(
                    "0 or 1 was expected at element {index}, got {}",
                    values[index]
                ))),
            },
            Decoding::OneHot => {
                let extent = self.shape.last().map_or(1, |extent| *extent as usize);
                values.chunks(extent).map(|row| self.hot(row)).collect()
            }
            Decoding::Largest => {
                let extent = self.shape.last().map_or(1, |extent| *extent as usize);
                values.chunks(extent).map(|row| self.largest(row)).collect()
            }
            Decoding::Most => {
                let extent = self.shape.last().map_or(1, |extent| *extent as usize);
                let rows = values.chunks(extent).map(|row| self.most(row));
                Ok(rows.collect::<Result<Vec<_>>>()?.concat())
            }
        }
    }

    /// [`Self::gather`], with the shape that the values have.
    ///
    /// # Errors
    /// As [`Self::gather`].
    pub fn answer(&self, registers: &[Vec<f64>], slots: usize) -> Result<Answer> {
        let values = self.gather(registers, slots)?;
        let extents = match self.decoding {
            Decoding::OneHot | Decoding::Largest => self.shape.len() - 1,
            _ => self.shape.len(),
        };
        let (name, shape) = (self.name.clone(), self.shape[..extents].to_vec());
        Ok(Answer { name, shape, decoding: self.decoding, values })
    }

    /// Whether a number is one that the output can hold. Real ones may be off by what the plan allows
    /// for, which is less than half of what they range over.
    fn within(&self, value: f64) -> bool {
        let Numbers { step, low, high } = self.numbers;
        let range = high - low;
        // A range of one number is met as closely as doubles meet it.
        let slack =
            if step > 0.0 { 0.5 * step } else { 0.5 * range + 1e-9 * self.numbers.magnitude() };
        (low - slack..=high + slack).contains(&value)
    }

    /// The place of the one that is 1 among zeros.
    fn hot(&self, row: &[f64]) -> Result<f64> {
        let ones: Vec<usize> = (0..row.len()).filter(|&index| row[index] == 1.0).collect();
        match ones[..] {
            [one] if row.iter().all(|x| *x == 0.0 || *x == 1.0) => Ok(one as f64),
            _ => Err(self.refuse(format!("a single 1 was expected, got {} of them", ones.len()))),
        }
    }

    /// 1 at the places of the largest, 0 at the others; of equal ones the first count.
    fn most(&self, row: &[f64]) -> Result<Vec<f64>> {
        if let Some(index) = row.iter().position(|x| !x.is_finite()) {
            return Err(self.refuse(format!("ranks were expected, got {}", row[index])));
        }
        let mut places: Vec<usize> = (0..row.len()).collect();
        places.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let mut found = vec![0.0; row.len()];
        let count = self.numbers.high as usize;
        places.iter().take(count).for_each(|&place| found[place] = 1.0);
        Ok(found)
    }

    /// The place of the largest, which has to stand out from zeros.
    fn largest(&self, row: &[f64]) -> Result<f64> {
        let places = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        match places {
            Some(place) if row[place] > LEAST && row[place].is_finite() => Ok(place as f64),
            _ => Err(self.refuse(format!("a number above {LEAST} was expected, there is none"))),
        }
    }

    fn refuse(&self, detail: String) -> Error {
        let detail = format!(
            "{detail}. Numbers closer than a gap= that was asked for were compared, the noise was \
             larger than planned for, or the server computed something else; the answer is not used"
        );
        Error::Unclear { output: self.name.clone(), detail }
    }
}

pub(super) fn check_unit(unit: f64) -> Result<()> {
    if unit.is_finite() && unit > 0.0 {
        return Ok(());
    }
    Err(range("a unit", "positive and finite", unit))
}

pub(super) fn check_array(name: &str, shape: &[u32], numbers: &Numbers) -> Result<u64> {
    within("the length of a name", 1..=MAX_NAME, name.len())?;
    within("the dimensions of an array", 0..=MAX_DIMENSIONS, shape.len())?;
    numbers.check()?;
    elements(shape).filter(|count| (1..=MAX_ELEMENTS).contains(count)).ok_or_else(|| {
        range("the elements of an array", format!("1 to {MAX_ELEMENTS}"), format!("{shape:?}"))
    })
}
