//! The two primes of a secret key: generated, read, written and checked. Owner only; wiped on drop.

use super::inner::order_bits;
use crate::additive::Messages;
use crate::biguint;
use crate::error::{Error, Result};
use crate::primes;
use crate::wire::Reader;
use crypto_bigint::{BoxedUint, CtLt, CtSelect};
use zeroize::{Zeroize, Zeroizing};

const WHAT: &str = "a secret key";

/// The primes of `n = p q` with `p < q`, and the prime orders of subgroups modulo each where noise
/// stays in those.
pub(crate) struct Primes {
    pub(crate) p: BoxedUint,
    pub(crate) q: BoxedUint,
    pub(crate) orders: Option<[BoxedUint; 2]>,
}

impl Drop for Primes {
    fn drop(&mut self) {
        self.p.zeroize();
        self.q.zeroize();
        self.orders.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
}

impl Primes {
    /// The primes in order, each with its order of a subgroup.
    pub(crate) fn new(p: BoxedUint, q: BoxedUint, orders: Option<[BoxedUint; 2]>) -> Self {
        if p < q {
            return Primes { p, q, orders };
        }
        Primes { p: q, q: p, orders: orders.map(|[p, q]| [q, p]) }
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(reader: &mut Reader<'_>, bits: u32, subgroup: bool) -> Result<Self> {
        let width = prime_bytes(bits);
        let p = biguint::from_bytes(reader.take(width)?);
        let q = biguint::from_bytes(reader.take(width)?);
        let orders = if subgroup {
            let width = order_bits(bits).div_ceil(8) as usize;
            let low = biguint::from_bytes(reader.take(width)?);
            Some([low, biguint::from_bytes(reader.take(width)?)])
        } else {
            None
        };
        if p >= q {
            return Err(reader.error("the primes are not in order"));
        }
        Ok(Primes { p, q, orders })
    }

    /// Appends the primes and the orders, each as long as the modulus says.
    pub(crate) fn write(&self, bits: u32, out: &mut Vec<u8>) {
        for prime in [&self.p, &self.q] {
            biguint::write_bytes(prime.as_words(), prime_bytes(bits), out);
        }
        let width = order_bits(bits).div_ceil(8) as usize;
        for order in self.orders.iter().flatten() {
            biguint::write_bytes(order.as_words(), width, out);
        }
    }
}

/// Bytes of a prime: foreign keys may have primes a few bits apart.
fn prime_bytes(bits: u32) -> usize {
    bits.div_ceil(16) as usize + 4
}

/// Primes for a modulus of exactly `bits` bits that pass [`check_primes`].
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn generate_primes(bits: u32, subgroup: bool) -> Result<Primes> {
    loop {
        let draw = |order: Option<&BoxedUint>| match order {
            None => primes::random_prime(bits / 2, |_| true),
            Some(order) => primes::random_prime_above(bits / 2, order, |_| true),
        };
        let orders = if subgroup {
            let order = || primes::random_prime(order_bits(bits), |_| true);
            Some([order()?, order()?])
        } else {
            None
        };
        let p = draw(orders.as_ref().map(|orders| &orders[0]))?;
        let q = draw(orders.as_ref().map(|orders| &orders[1]))?;
        let primes = Primes::new(p, q, orders);
        // gcd(p - 1, q - 1) = 2 holds for two of three pairs.
        if relations(&primes, bits, true).is_ok() {
            return Ok(primes);
        }
    }
}

/// Refuses primes that cannot make a key of `bits` bits; `strict` asks for all that our own
/// generation promises.
///
/// # Errors
/// [`Error::Malformed`].
pub(crate) fn check_primes(primes: &Primes, bits: u32, strict: bool) -> Result<()> {
    if !primes::is_prime(&primes.p) || !primes::is_prime(&primes.q) {
        return Err(Error::malformed(WHAT, "a prime is not prime"));
    }
    for order in primes.orders.iter().flatten() {
        if order.bits() != order_bits(bits) || !primes::is_prime(order) {
            return Err(Error::malformed(
                WHAT,
                "the order of a subgroup is not a prime of its length",
            ));
        }
    }
    relations(primes, bits, strict)
}

/// What must hold between the primes.
fn relations(primes: &Primes, bits: u32, strict: bool) -> Result<()> {
    let refuse = |detail: &str| Err(Error::malformed(WHAT, detail));
    let one = biguint::small(1);
    let (p, q) = (&primes.p, &primes.q);
    let n = biguint::product(p, q);
    if n.bits() != bits {
        return refuse("the primes make a modulus of another length");
    }
    let (p1, q1) = (p.wrapping_sub(&one), q.wrapping_sub(&one));
    // Close primes fall to Fermat's method.
    let apart = biguint::resized(q, bits).wrapping_sub(p);
    if apart.bits() + (bits / 8).min(100) < bits / 2 {
        return refuse("the primes are too close to each other");
    }
    if !biguint::is_one(&biguint::gcd(&n, &biguint::product(&p1, &q1))) {
        return refuse("a prime divides the other less one");
    }
    if !strict {
        return Ok(());
    }
    if p.as_words()[0] & 3 != 3 || q.as_words()[0] & 3 != 3 {
        return refuse("a prime is not 3 modulo 4");
    }
    if biguint::gcd(&p1, &q1) != biguint::small(2) {
        return refuse("the primes less one share more than 2");
    }
    if let Some([order_p, order_q]) = &primes.orders {
        let divides = |order: &BoxedUint, value: &BoxedUint| {
            bool::from(biguint::reduced(value, order).is_zero())
        };
        if !divides(order_p, &p1) || !divides(order_q, &q1) || order_p == order_q {
            return refuse("the order of a subgroup does not divide its prime less one");
        }
    }
    Ok(())
}

/// A random element of prime `order` modulo `prime`.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn subgroup_root(prime: &BoxedUint, order: &BoxedUint) -> Result<BoxedUint> {
    let (cofactor, _) = biguint::divided(&prime.wrapping_sub(biguint::small(1)), order);
    loop {
        let x = primes::random_below(prime)?;
        let root = biguint::power_mod(&x, &cofactor, prime);
        if !biguint::is_one(&root) {
            return Ok(root);
        }
    }
}

/// Residues as signed messages, each below `2^(bits - 1)` in absolute value.
///
/// # Errors
/// [`Error::Bound`] when one of them is not; not which, nor its value.
pub(crate) fn signed(
    residues: &[Zeroizing<BoxedUint>],
    modulus: &BoxedUint,
    bits: u32,
) -> Result<Messages> {
    let words = modulus.as_words().len() + 1;
    let wide_bits = 64 * words as u32;
    let half = biguint::resized(&modulus.shr(1), wide_bits);
    let (zero, modulus) =
        (biguint::resized(&biguint::small(0), wide_bits), biguint::resized(modulus, wide_bits));
    let mut wide = Messages::zeros(words, residues.len());
    for (at, residue) in residues.iter().enumerate() {
        let residue = Zeroizing::new(biguint::resized(residue, wide_bits));
        let off = zero.ct_select(&modulus, half.ct_lt(&residue));
        let centred = Zeroizing::new(residue.wrapping_sub(&off));
        wide.row_mut(at).copy_from_slice(centred.as_words());
    }
    if !(0..wide.len()).fold(true, |fits, at| fits & wide.fits(at, bits)) {
        return Err(Error::Bound);
    }
    let mut out = Messages::zeros(bits.div_ceil(64) as usize, residues.len());
    for at in 0..residues.len() {
        let width = out.width();
        out.row_mut(at).copy_from_slice(&wide.row(at)[..width]);
    }
    Ok(out)
}
