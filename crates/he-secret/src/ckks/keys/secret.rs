//! Secret key: encrypts, decrypts, and makes the public key and the evaluation keys. Owner only;
//! wiped on drop.

use super::super::inner::{Meta, SecretPoly, SmallPolynomial, each, mask, open};
use super::super::{
    Ciphertext, Entropy, EvaluationKeys, KeyPlan, Noise, Ntt, Params, Plaintext, Poly, PublicKey,
    SeededCiphertext,
};
use super::budget::Budget;
use super::key_switch_key;
use crate::error::{Error, Result};
use crate::wire::{Header, KeyId, Kind, Scheme};
use ciphervec_arith::poly;
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// The secret ternary polynomial s, expanded from 32 bytes. Wiped on drop.
pub struct SecretKey {
    params: Arc<Params>,
    id: KeyId,
    seed: Zeroizing<[u8; 32]>,
    /// The values of s modulo all primes, special ones included.
    values: Zeroizing<Vec<u64>>,
    pub(in super::super) budget: Mutex<Budget>,
}

impl SecretKey {
    /// A fresh key from the operating system's generator.
    ///
    /// # Errors
    /// [`Error::Randomness`] if the generator fails.
    pub fn generate(params: &Arc<Params>) -> Result<Self> {
        Ok(Self::from_seed(params, &*Entropy::system().seed()?))
    }

    /// The key of a seed: derive the seed from a master key, or keep it as the key itself.
    pub fn from_seed(params: &Arc<Params>, seed: &[u8; 32]) -> Self {
        let degree = params.degree();
        let secret = SmallPolynomial::ternary(degree, seed, 0);
        let mut values = Zeroizing::new(vec![0; params.tables().len() * degree]);
        each(&mut values, degree, |index, limb| {
            let table = &params.tables()[index];
            secret.lift(limb, table.modulus());
            table.forward(limb);
        });
        let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 ckks key-id");
        hasher.update(seed).update(&params.param_id().0);
        let id = KeyId::of_hash(hasher.finalize().as_bytes());
        zeroize::Zeroize::zeroize(&mut hasher);
        SecretKey {
            params: params.clone(),
            id,
            seed: Zeroizing::new(*seed),
            values,
            budget: Mutex::default(),
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The public name of the key.
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// A seed for another secret that belongs to this one.
    pub(in super::super) fn derived(&self, context: &'static str) -> Zeroizing<[u8; 32]> {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(&*self.seed).update(&self.params.param_id().0);
        let seed = Zeroizing::new(*hasher.finalize().as_bytes());
        zeroize::Zeroize::zeroize(&mut hasher);
        seed
    }

    /// The values of s modulo all primes, special ones included.
    pub(in super::super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// The values of s modulo q_`index`.
    fn limb(&self, index: usize) -> &[u64] {
        &self.values[index * self.params.degree()..][..self.params.degree()]
    }

    /// Encrypts under the secret key: less noise than under the public one.
    ///
    /// # Errors
    /// [`Error::Parameters`] for a plaintext of other parameters, [`Error::Randomness`].
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext> {
        let Encrypted { constant, linear, meta, .. } =
            self.encrypt_both(plaintext, &mut Entropy::system())?;
        Ok(Ciphertext::from_parts(vec![constant, linear], meta))
    }

    /// [`Self::encrypt`] in the form that takes half the bytes.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_seeded(&self, plaintext: &Plaintext) -> Result<SeededCiphertext> {
        self.encrypt_seeded_with(plaintext, &mut Entropy::system())
    }

    /// [`Self::encrypt_seeded`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_seeded_with(
        &self,
        plaintext: &Plaintext,
        entropy: &mut Entropy,
    ) -> Result<SeededCiphertext> {
        let Encrypted { seed, constant, meta, .. } = self.encrypt_both(plaintext, entropy)?;
        Ok(SeededCiphertext::from_parts(seed, constant, meta))
    }

    fn encrypt_both(&self, plaintext: &Plaintext, entropy: &mut Entropy) -> Result<Encrypted> {
        let params = &self.params;
        params.check_same("a plaintext", plaintext.params())?;
        let seed = *entropy.seed()?;
        let linear = mask(params, plaintext.level(), &seed);
        let constant = self.hide(&linear, entropy)?;
        let mut constant = constant.release();
        constant.add_assign(plaintext.poly());
        let meta = Meta {
            key: self.id,
            scale: plaintext.scale(),
            slots: plaintext.slots(),
            noise: Noise::secret_key(params.expansion()),
            magnitude: plaintext.magnitude(),
        };
        Ok(Encrypted { seed, constant, linear, meta })
    }

    /// −a s + e.
    fn hide(&self, linear: &Poly<Ntt>, entropy: &mut Entropy) -> Result<SecretPoly> {
        let params = &self.params;
        let noise_seed = entropy.seed()?;
        let noise = SmallPolynomial::gaussian(params.degree(), &noise_seed, 0);
        Ok(SecretPoly::new(Poly::filled(params, linear.level(), |index, table, limb| {
            let m = table.modulus();
            noise.lift(limb, m);
            table.forward(limb);
            // −(a s − e): one multiply-add in place of a product and a difference.
            poly::neg_assign(limb, m);
            poly::mul_add_assign(limb, linear.limb(index), self.limb(index), m);
            poly::neg_assign(limb, m);
        })))
    }

    /// c_0 + c_1 s (+ c_2 s²): the message with its exact error, for the owner alone. Whoever is
    /// shown it along with the ciphertext has a linear equation in s; [`Self::publish`] is for
    /// results that others see.
    ///
    /// # Errors
    /// [`Error::WrongKey`] or [`Error::Parameters`].
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Plaintext> {
        let what = "a ciphertext";
        self.params.check_same(what, ciphertext.params())?;
        if ciphertext.key_id() != self.id {
            let actual = ciphertext.key_id();
            return Err(Error::WrongKey { what, expected: self.id, actual });
        }
        let parts = ciphertext.parts();
        let poly = Poly::filled(&self.params, ciphertext.level(), |index, table, limb| {
            // Horner's rule in s.
            limb.copy_from_slice(parts[parts.len() - 1].limb(index));
            for part in parts.iter().rev().skip(1) {
                poly::mul_assign(limb, self.limb(index), table.modulus());
                poly::add_assign(limb, part.limb(index), table.modulus());
            }
        });
        let (scale, slots) = (ciphertext.scale(), ciphertext.slots());
        Ok(Plaintext::from_parts(poly, scale, slots, ciphertext.magnitude()))
    }

    /// The public key, with which anybody encrypts.
    ///
    /// # Errors
    /// [`Error::Randomness`] if the generator fails.
    pub fn public_key(&self) -> Result<PublicKey> {
        self.public_key_with(&mut Entropy::system())
    }

    /// [`Self::public_key`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::public_key`].
    pub fn public_key_with(&self, entropy: &mut Entropy) -> Result<PublicKey> {
        let seed = *entropy.seed()?;
        let linear = mask(&self.params, self.params.max_level(), &seed);
        let constant = self.hide(&linear, entropy)?.release();
        Ok(PublicKey::from_parts(self.id, seed, constant, linear))
    }

    /// The evaluation keys that `plan` lists, each with a seed of its own.
    ///
    /// # Errors
    /// [`Error::Range`] for a level or an operation that the parameters do not have,
    /// [`Error::Randomness`].
    pub fn evaluation_keys(&self, plan: &KeyPlan) -> Result<EvaluationKeys> {
        self.evaluation_keys_with(plan, &mut Entropy::system())
    }

    /// [`Self::evaluation_keys`] with randomness from `entropy`.
    ///
    /// # Errors
    /// As [`Self::evaluation_keys`].
    pub fn evaluation_keys_with(
        &self,
        plan: &KeyPlan,
        entropy: &mut Entropy,
    ) -> Result<EvaluationKeys> {
        self.evaluation_keys_watched(plan, entropy, &mut || ())
    }

    /// [`Self::evaluation_keys_with`], which calls `made` after each key.
    pub(in super::super) fn evaluation_keys_watched(
        &self,
        plan: &KeyPlan,
        entropy: &mut Entropy,
        made: &mut dyn FnMut(),
    ) -> Result<EvaluationKeys> {
        let params = &self.params;
        let level = plan.checked_level(params)?;
        let key = |element| {
            let key = match element {
                0 => {
                    let square = self.square();
                    key_switch_key::generate(params, level, &self.values, &square, entropy)?
                }
                _ => {
                    let permuted = self.permuted(inverse_element(params, element));
                    key_switch_key::generate(params, level, &permuted, &self.values, entropy)?
                }
            };
            made();
            Ok((element, Arc::new(key)))
        };
        let keys = plan.elements(params).into_iter().map(key).collect::<Result<_>>()?;
        Ok(EvaluationKeys::from_parts(params, self.id, level, keys))
    }

    /// The values of s², which products are relinearised from.
    fn square(&self) -> Zeroizing<Vec<u64>> {
        let mut square = self.values.clone();
        each(&mut square, self.params.degree(), |index, limb| {
            poly::mul_assign(limb, self.limb(index), self.params.tables()[index].modulus());
        });
        square
    }

    /// The values of s(X^`galois`): c_1 s becomes d_0 + d_1 s(X^(1/g)); then X ↦ X^g takes all to s
    /// (docs/ckks.md, section 4).
    fn permuted(&self, galois: u64) -> Zeroizing<Vec<u64>> {
        let permutation = self.params.automorphism(galois);
        let mut permuted = Zeroizing::new(vec![0; self.values.len()]);
        each(&mut permuted, self.params.degree(), |index, limb| {
            poly::permute(limb, self.limb(index), &permutation);
        });
        permuted
    }

    /// Serialises the key, not encrypted: the seed, and how much of its budget it has published.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut payload = Zeroizing::new(self.seed.to_vec());
        payload.extend(self.published().to_bytes());
        let header = Header {
            scheme: Scheme::Ckks,
            kind: Kind::SecretKey,
            params: self.params.param_id(),
            key: self.id,
        };
        Zeroizing::new(header.frame(&payload))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Damaged or foreign bytes, or other parameters.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self> {
        let (header, mut reader) = open(params, Kind::SecretKey, bytes)?;
        let seed = Zeroizing::new(reader.array()?);
        let budget = Budget::read(&mut reader)?;
        let key = Self::from_seed(params, &seed);
        if header.key != key.id {
            let detail = format!("its key id is {}, the frame names {}", key.id, header.key);
            return Err(reader.error(detail));
        }
        reader.finish()?;
        Ok(SecretKey { budget: Mutex::new(budget), ..key })
    }
}

/// Both parts of a ciphertext, and the seed of the second.
struct Encrypted {
    seed: [u8; 32],
    constant: Poly<Ntt>,
    linear: Poly<Ntt>,
    meta: Meta,
}

/// The inverse of an odd number modulo the order of the roots, a power of two.
fn inverse_element(params: &Params, element: u64) -> u64 {
    // Every Newton step doubles the number of right bits, and an odd number inverts itself modulo
    // 8.
    let newton = |x: u64, _| x.wrapping_mul(2u64.wrapping_sub(element.wrapping_mul(x)));
    let order = params.ring().root_order(params.spec().log_degree);
    (0..5).fold(element, newton) % order
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SecretKey(CKKS {}, redacted)", self.id)
    }
}
