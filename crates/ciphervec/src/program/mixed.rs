//! A machine on registers of two kinds, for both sides: encrypted ones, and those of public inputs,
//! which are numbers in the clear.
//!
//! What is computed of public registers alone takes no level and has no noise. Where one meets an
//! encrypted register it is encoded, at the level and the scale of that, as a constant of the plan is.

use super::machine::{Constant, Machine};
use crate::error::Result;
use ciphervec_he::ckks::{LookupTable, Polynomial, Sign};

/// A machine on numbers in the clear, or on what is known of them.
pub trait Open: Machine {
    /// The numbers of a register, one a slot; where they are not known yet, a bound on them.
    fn numbers(a: &Self::Register) -> &[f64];
    /// Their signs, ±1: nothing stands in for them, however close to 0 numbers are.
    fn signs(a: &Self::Register) -> Self::Register;
}

/// A register.
#[derive(Clone, Debug)]
pub enum Held<S, P> {
    /// Encrypted.
    Sealed(S),
    /// Of public inputs alone.
    Public(P),
}

use Held::{Public, Sealed};

/// A machine of two: one for encrypted registers, one for those in the clear.
#[derive(Clone, Copy, Debug)]
pub struct Mixed<'a, M, P> {
    pub(super) sealed: &'a M,
    pub(super) open: P,
}

impl<'a, M, P> Mixed<'a, M, P> {
    /// One of these two.
    #[doc(hidden)]
    pub fn from_parts(sealed: &'a M, open: P) -> Self {
        Mixed { sealed, open }
    }
}

/// The register of either kind that one operation of both machines makes.
macro_rules! either {
    ($self:ident, $a:expr, $operation:ident $(, $given:expr)*) => {
        Ok(match $a {
            Sealed(a) => Sealed($self.sealed.$operation(a $(, $given)*)?),
            Public(a) => Public($self.open.$operation(a $(, $given)*)?),
        })
    };
}

impl<M: Machine, P: Open> Machine for Mixed<'_, M, P> {
    type Register = Held<M::Register, P::Register>;

    fn add(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register> {
        Ok(match (a, b) {
            (Sealed(a), Sealed(b)) => Sealed(self.sealed.add(a, b)?),
            (Public(a), Public(b)) => Public(self.open.add(a, b)?),
            (Sealed(a), Public(b)) | (Public(b), Sealed(a)) => {
                Sealed(self.sealed.add_vector(a, P::numbers(b))?)
            }
        })
    }

    fn subtract(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register> {
        Ok(match (a, b) {
            (Sealed(a), Sealed(b)) => Sealed(self.sealed.subtract(a, b)?),
            (Public(a), Public(b)) => Public(self.open.subtract(a, b)?),
            (Sealed(_), Public(b)) => return self.add(a, &Public(self.open.negate(b)?)),
            (Public(_), Sealed(b)) => return self.add(a, &Sealed(self.sealed.negate(b)?)),
        })
    }

    fn negate(&self, a: &Self::Register) -> Result<Self::Register> {
        either!(self, a, negate)
    }

    fn add_number(&self, a: &Self::Register, number: f64) -> Result<Self::Register> {
        either!(self, a, add_number, number)
    }

    fn multiply_number(&self, a: &Self::Register, number: f64) -> Result<Self::Register> {
        either!(self, a, multiply_number, number)
    }

    fn multiply_integer(&self, a: &Self::Register, factor: i64) -> Result<Self::Register> {
        either!(self, a, multiply_integer, factor)
    }

    fn add_vector(&self, a: &Self::Register, values: &[f64]) -> Result<Self::Register> {
        either!(self, a, add_vector, values)
    }

    fn multiply_vector(&self, a: &Self::Register, values: &[f64]) -> Result<Self::Register> {
        either!(self, a, multiply_vector, values)
    }

    fn add_constant(&self, a: &Self::Register, constant: Constant<'_>) -> Result<Self::Register> {
        either!(self, a, add_constant, constant)
    }

    fn multiply_constant(
        &self,
        a: &Self::Register,
        constant: Constant<'_>,
    ) -> Result<Self::Register> {
        either!(self, a, multiply_constant, constant)
    }

    fn multiply(&self, a: &Self::Register, b: &Self::Register) -> Result<Self::Register> {
        Ok(match (a, b) {
            (Sealed(a), Sealed(b)) => Sealed(self.sealed.multiply(a, b)?),
            (Public(a), Public(b)) => Public(self.open.multiply(a, b)?),
            (Sealed(a), Public(b)) | (Public(b), Sealed(a)) => {
                Sealed(self.sealed.multiply_vector(a, P::numbers(b))?)
            }
        })
    }

    fn square(&self, a: &Self::Register) -> Result<Self::Register> {
        either!(self, a, square)
    }

    fn rotate(&self, a: &Self::Register, steps: &[i64]) -> Result<Vec<Self::Register>> {
        Ok(match a {
            Sealed(a) => self.sealed.rotate(a, steps)?.into_iter().map(Sealed).collect(),
            Public(a) => self.open.rotate(a, steps)?.into_iter().map(Public).collect(),
        })
    }

    fn polynomial(&self, a: &Self::Register, polynomial: &Polynomial) -> Result<Self::Register> {
        either!(self, a, polynomial, polynomial)
    }

    fn sign(&self, a: &Self::Register, sign: &Sign) -> Result<Self::Register> {
        Ok(match a {
            Sealed(a) => Sealed(self.sealed.sign(a, sign)?),
            Public(a) => Public(P::signs(a)),
        })
    }

    fn sign_stage(&self, a: &Self::Register, sign: &Sign, stage: usize) -> Result<Self::Register> {
        Ok(match a {
            Sealed(a) => Sealed(self.sealed.sign_stage(a, sign, stage)?),
            Public(a) => Public(P::signs(a)),
        })
    }

    fn refresh(&self, a: &Self::Register) -> Result<Self::Register> {
        either!(self, a, refresh)
    }

    fn look_up(&self, a: &Self::Register, tables: &[&LookupTable]) -> Result<Vec<Self::Register>> {
        Ok(match a {
            Sealed(a) => self.sealed.look_up(a, tables)?.into_iter().map(Sealed).collect(),
            Public(a) => self.open.look_up(a, tables)?.into_iter().map(Public).collect(),
        })
    }

    fn bound(&self, a: Self::Register, bound: f64) -> Result<Self::Register> {
        either!(self, a, bound, bound)
    }

    fn settle(&self, a: &Self::Register) -> Result<Option<Self::Register>> {
        Ok(match a {
            Sealed(a) => self.sealed.settle(a)?.map(Sealed),
            Public(_) => None,
        })
    }

    fn finish(&self, a: &Self::Register) -> Result<Self::Register> {
        either!(self, a, finish)
    }
}
