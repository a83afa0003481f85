//! Noise computed ahead; each element is used once.
//!
//! An element of the pool opens the ciphertext it goes into, so a pool is as secret as the
//! messages, and one used twice shows the difference of two messages. There is no way to look at an
//! element or to put one back. A fork has its parent's elements, too: a pool serves the process that
//! made it and no other.

use super::{Ciphertexts, FactoringKey, Group, NoiseSource};
use crate::additive::{Messages, Table};
use crate::biguint;
use crate::error::{Error, Result};
use crate::process;
use crate::wire::{self, KeyId, Kind, Reader};
use ciphervec_arith::montgomery::Residues;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::{Zeroize, Zeroizing};

const WHAT: &str = "a noise pool";
/// Elements drawn between two looks at the lock, so that an encryption never waits long.
const BATCH: usize = 64;

/// Noises of one key, each for one encryption. Wiped on drop.
pub struct NoisePool {
    key: KeyId,
    process: u32,
    /// Words of an element.
    size: usize,
    /// Base-`n` digits of the elements left.
    stock: Mutex<Vec<u64>>,
}

impl core::fmt::Debug for NoisePool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "NoisePool({} of key {}, redacted)", self.len(), self.key)
    }
}

impl Drop for NoisePool {
    fn drop(&mut self) {
        self.stock.get_mut().unwrap_or_else(PoisonError::into_inner).zeroize();
    }
}

impl NoisePool {
    /// An empty pool for one key, public or secret.
    pub fn new(key: &(impl NoiseSource + ?Sized)) -> Self {
        let group = key.group();
        NoisePool {
            key: group.key,
            process: process::id(),
            size: group.modulus.element_words(),
            stock: Mutex::new(Vec::new()),
        }
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.key
    }

    /// Elements left; in a fork none are.
    pub fn len(&self) -> usize {
        self.lock().map_or(0, |stock| stock.len() / self.size)
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Draws `count` elements more. Others may take from the pool meanwhile.
    ///
    /// # Errors
    /// [`Error::WrongKey`]; [`Error::Forked`]; [`Error::Randomness`], or [`Error::Fault`] from a
    /// secret key.
    pub fn fill(&self, key: &(impl NoiseSource + ?Sized), count: usize) -> Result<()> {
        self.check(key.group())?;
        let mut left = count;
        while left > 0 {
            let batch = left.min(BATCH);
            let drawn = Zeroizing::new(key.noise(1, batch)?.to_digits());
            let mut stock = self.lock()?;
            // A vector that grows by itself leaves its old memory unwiped.
            if stock.capacity() < stock.len() + drawn.len() {
                let mut wider = Vec::with_capacity(stock.len() + left * self.size);
                wider.extend_from_slice(&stock);
                stock.zeroize();
                *stock = wider;
            }
            stock.extend_from_slice(&drawn);
            left -= batch;
        }
        Ok(())
    }

    /// Encrypts with noise of the pool.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when fewer elements are left than messages came: then none is used.
    /// [`Error::WrongKey`]; [`Error::Forked`]; those of [`crate::additive::Evaluate::encrypt`].
    pub fn encrypt(
        &self,
        key: &impl FactoringKey,
        rows: usize,
        columns: usize,
        messages: &Messages,
    ) -> Result<Ciphertexts> {
        self.check(key.group())?;
        let mut residues = key.encode(rows, columns, messages)?;
        residues.mul_assign(&self.take(key.group(), rows, columns)?);
        Ok(key.group().table(residues))
    }

    /// As [`Self::encrypt`], with fresh noise of `key` for all messages when the pool does not
    /// reach.
    ///
    /// # Errors
    /// As [`Self::encrypt`], but never [`Error::Exhausted`].
    pub fn encrypt_or_draw(
        &self,
        key: &impl FactoringKey,
        rows: usize,
        columns: usize,
        messages: &Messages,
    ) -> Result<Ciphertexts> {
        match self.encrypt(key, rows, columns, messages) {
            Err(Error::Exhausted { .. }) => {
                crate::additive::Evaluate::encrypt(key, rows, columns, messages)
            }
            other => other,
        }
    }

    /// Re-randomises with noise of the pool.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when fewer elements are left than ciphertexts came;
    /// [`Error::WrongKey`]; [`Error::Forked`].
    pub fn rerandomise(&self, key: &impl FactoringKey, table: &mut Ciphertexts) -> Result<()> {
        self.check(key.group())?;
        key.group().check(table)?;
        table.residues.mul_assign(&self.take(key.group(), table.rows(), table.columns())?);
        Ok(())
    }

    /// Takes elements out, for good.
    fn take(&self, group: &Group, rows: usize, columns: usize) -> Result<Residues> {
        let asked = rows.saturating_mul(columns);
        let taken = {
            let mut stock = self.lock()?;
            let left = stock.len() / self.size;
            if asked > left {
                return Err(Error::Exhausted { asked, left });
            }
            let from = (left - asked) * self.size;
            let taken = Zeroizing::new(stock[from..].to_vec());
            stock[from..].zeroize();
            stock.truncate(from);
            taken
        };
        Ok(Residues::from_digits(&group.modulus, rows, columns, &taken)?)
    }

    /// The pool, framed and **not encrypted**, for a file that encrypts it. The pool is gone: its
    /// elements are in the bytes only.
    pub fn into_bytes(self, key: &(impl NoiseSource + ?Sized)) -> Result<Zeroizing<Vec<u8>>> {
        let group = key.group();
        self.check(group)?;
        let stock = self.lock()?;
        let width = group.bits().div_ceil(8) as usize;
        let digits = stock.len() / group.modulus.words();
        let mut payload = Zeroizing::new(Vec::with_capacity(8 + digits * width));
        payload.extend(((stock.len() / self.size) as u64).to_le_bytes());
        for digit in stock.chunks_exact(group.modulus.words()) {
            biguint::write_bytes(digit, width, &mut payload);
        }
        drop(stock);
        Ok(Zeroizing::new(group.header(Kind::NoisePool).frame(&payload)))
    }

    /// Reads a pool. The caller sees to it that the same bytes are never read twice.
    ///
    /// # Errors
    /// [`Error::Malformed`] and the other errors of [`wire::open`]; [`Error::WrongKey`].
    pub fn from_bytes(key: &(impl NoiseSource + ?Sized), bytes: &[u8]) -> Result<Self> {
        let group = key.group();
        let (header, payload) = wire::open(Kind::NoisePool, bytes)?;
        group.check_header(WHAT, &header)?;
        let mut reader = Reader::new(WHAT, payload);
        let count = reader.u64()?;
        let width = group.bits().div_ceil(8) as usize;
        let element = (width * group.modulus.digits()) as u64;
        if count.checked_mul(element) != Some(reader.remaining() as u64) {
            return Err(reader.error(format!(
                "{count} elements of {element} bytes promised, {} bytes came",
                reader.remaining()
            )));
        }
        let body = reader.take(reader.remaining())?;
        let words = group.modulus.words();
        let pool = NoisePool::new(key);
        let mut digits = Zeroizing::new(vec![0; body.len() / width * words]);
        for (digit, bytes) in digits.chunks_exact_mut(words).zip(body.chunks_exact(width)) {
            biguint::read_bytes(bytes, digit);
        }
        if count > 0 {
            group.accept(1, count as usize, &digits).map_err(|error| match error {
                Error::Malformed { detail, .. } => Error::malformed(WHAT, detail),
                other => other,
            })?;
        }
        *pool.lock()? = core::mem::take(&mut *digits);
        Ok(pool)
    }

    fn check(&self, group: &Group) -> Result<()> {
        if group.key == self.key {
            return Ok(());
        }
        Err(Error::WrongKey { what: WHAT, expected: group.key, actual: self.key })
    }

    /// The stock; whoever panicked while holding it left whole elements. Not in a fork, where a
    /// thread of the parent's may hold it for ever.
    fn lock(&self) -> Result<MutexGuard<'_, Vec<u64>>> {
        if self.process != process::id() {
            return Err(Error::Forked { what: WHAT });
        }
        Ok(self.stock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A secret key of whichever scheme, asked whether it pays to draw its noise ahead.
pub trait Precompute {
    /// What draws the noise of a [`NoisePool`], and the public key that is [`Pooled`] with it;
    /// `None` where noise is quick to draw.
    fn precomputable(&self) -> Option<(&dyn NoiseSource, &dyn FactoringKey)> {
        None
    }
}

/// A public key whose fresh noise comes from a pool: what [`crate::additive::Evaluate`] does with
/// it takes no powers.
///
/// Everything that needs noise gives [`Error::Exhausted`] when the pool does not reach, and uses
/// none of it then.
#[derive(Clone, Copy, Debug)]
pub struct Pooled<'a, K: ?Sized> {
    key: &'a K,
    pool: &'a NoisePool,
}

impl<'a, K: FactoringKey + ?Sized> Pooled<'a, K> {
    /// Joins them.
    ///
    /// # Errors
    /// [`Error::WrongKey`].
    pub fn new(key: &'a K, pool: &'a NoisePool) -> Result<Self> {
        pool.check(key.group())?;
        Ok(Pooled { key, pool })
    }
}

impl<K: FactoringKey + ?Sized> NoiseSource for Pooled<'_, K> {
    fn group(&self) -> &Group {
        self.key.group()
    }

    fn noise(&self, rows: usize, columns: usize) -> Result<Residues> {
        self.pool.take(self.key.group(), rows, columns)
    }
}

impl<K: FactoringKey + ?Sized> FactoringKey for Pooled<'_, K> {
    fn message_bits(&self) -> u32 {
        FactoringKey::message_bits(self.key)
    }

    fn encode(&self, rows: usize, columns: usize, messages: &Messages) -> Result<Residues> {
        self.key.encode(rows, columns, messages)
    }
}
