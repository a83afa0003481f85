//! The client of similarity on CKKS: it holds the secret key, encrypts rows of doubles and decrypts results.

use super::array::{Side, collect};
use super::keys::{self, KeyList};
use super::origin::Condition;
use super::serialize::{put, read_params, read_request, take, write_request};
use super::server::expect_key;
use super::{
    ArrayLayout, ArrayPacking, EncryptedArray, PlainRows, Plan, PlanRequest, PostProcessing, Role,
    Server, Spread,
};
use crate::error::{Error, Result};
use ciphervec_he_secret::ckks::{
    Budget, Ciphertext, Encoding, Params, Plaintext, PublicKey, PublishPolicy, SecretKey,
};
use ciphervec_he_secret::wire::{self, Header, Kind, Reader, Scheme};
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroizing;

/// How rows are encrypted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EncryptOptions {
    /// Where coordinates lie.
    pub layout: ArrayLayout,
    /// For which side of a product, in layout `coefficients`.
    pub role: Role,
    /// What the rows are compared with, in layout `coefficients`.
    pub spread: Spread,
    /// Whether rows are scaled to length 1 first.
    pub normalize: bool,
    /// A bound on the absolute value of a coordinate. It is public; by default a power of two that
    /// fits the rows.
    pub magnitude: Option<f64>,
    /// The level; by default the highest. See [`Server::fresh_level`].
    pub level: Option<usize>,
}

/// The key owner: a secret key, and the server's half that belongs to it.
pub struct Client {
    pub(super) secret: SecretKey,
    server: Server,
    list: KeyList,
    request: Option<PlanRequest>,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client({}, redacted)", self.server.key_id())
    }
}

impl Client {
    /// A fresh key with the keys of a plan.
    ///
    /// # Errors
    /// Those of [`Self::generate`].
    pub fn for_plan(plan: &Plan) -> Result<Self> {
        let secret = SecretKey::generate(plan.params())?;
        Self::with_secret(secret, plan.keys().clone(), Some(*plan.request()))
    }

    /// A fresh key under parameters of one's choice.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`]; a level or a rotation that the parameters do not have.
    pub fn generate(params: &Arc<Params>, list: KeyList) -> Result<Self> {
        Self::with_secret(SecretKey::generate(params)?, list, None)
    }

    /// The owner of a key that was made before. Its evaluation keys are made anew, which changes
    /// none of its ciphertexts.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn with_secret(
        secret: SecretKey,
        list: KeyList,
        request: Option<PlanRequest>,
    ) -> Result<Self> {
        let products = Arc::new(secret.evaluation_keys(&list.products())?);
        let rotations = Arc::new(secret.evaluation_keys(&list.turns())?);
        let server = Server::new(products, rotations)?.described(request);
        Ok(Client { secret, server, list, request })
    }

    /// The owner, not encrypted, for a key file: parameters, what they are for, which evaluation
    /// keys to make, the secret key.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        let params = self.server.params();
        let secret = self.secret.to_bytes();
        // Room for all of it from the start: growing would leave a copy of the secret behind.
        let mut payload = Zeroizing::new(Vec::with_capacity(secret.len() + 1024));
        put(&mut payload, &params.to_bytes());
        write_request(self.request.as_ref(), &mut payload);
        keys::write(&self.list, &mut payload);
        put(&mut payload, &secret);
        let (params, key) = (params.param_id(), self.secret.key_id());
        let header = Header { scheme: Scheme::Ckks, kind: Kind::SecretKey, params, key };
        Zeroizing::new(header.frame(&payload))
    }

    /// Reads what [`Self::to_secret_bytes`] wrote, and makes the evaluation keys anew.
    ///
    /// # Errors
    /// Damaged bytes, and the secret key of another scheme.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, payload) = wire::open(Kind::SecretKey, bytes)?;
        let mut reader = Reader::new("a CKKS secret key", payload);
        if header.scheme != Scheme::Ckks {
            let detail = format!("this is the secret key of {}", header.scheme.as_str());
            return Err(reader.error(detail).into());
        }
        let params = read_params(&header, &mut reader)?;
        let request = read_request(&mut reader)?;
        let list = keys::read(&params, &mut reader)?;
        let secret = take(&mut reader)?;
        reader.finish()?;
        let secret = SecretKey::from_bytes(&params, secret)?;
        expect_key(header.key, secret.key_id())?;
        Self::with_secret(secret, list, request)
    }

    /// Sixteen public bytes that name key and parameters.
    pub fn label(&self) -> [u8; 16] {
        let mut label = [0; 16];
        label[..8].copy_from_slice(&self.secret.key_id().0);
        label[8..].copy_from_slice(&self.server.params().param_id().0);
        label
    }

    /// What the server gets.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Which keys that has.
    pub fn list(&self) -> &KeyList {
        &self.list
    }

    /// What the parameters were chosen for, if for one operation.
    pub fn request(&self) -> Option<&PlanRequest> {
        self.request.as_ref()
    }

    /// A key that lets others encrypt.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Randomness`].
    pub fn public_key(&self) -> Result<PublicKey> {
        Ok(self.secret.public_key()?)
    }

    /// Rows, encrypted.
    ///
    /// # Errors
    /// Rows that a ciphertext has no room for, larger than was declared, or without a
    /// direction; see [`Error`].
    ///
    /// [`Error`]: crate::Error
    pub fn encrypt(
        &self,
        rows: &PlainRows<'_>,
        options: &EncryptOptions,
    ) -> Result<EncryptedArray> {
        encrypt(self.server.params(), rows, options, |plain| {
            let seeded = self.secret.encrypt_seeded(plain)?;
            Ok((Some(*seeded.seed()), seeded.expand()))
        })
    }

    /// The numbers of an array, row after row; roots are taken where that is what is left to do.
    ///
    /// For the key owner alone: errors of exact decryptions that others see give the key away (Li &
    /// Micciancio 2021).
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::WrongKey`] and ciphertexts of other parameters;
    /// [`ciphervec_he_secret::Error::Outside`] for numbers beyond their magnitude, or computed from some
    /// beyond the interval that was stated for them: they mean nothing.
    pub fn decrypt(&self, array: &EncryptedArray) -> Result<Vec<f64>> {
        expect_key(self.server.key_id(), array.key_id())?;
        array.expect_room("decryption", self.server.request().is_some())?;
        for condition in &array.origin().conditions {
            let numbers = self.opened(&condition.packing, Side::Left, &condition.ciphertexts)?;
            let margin = condition.ciphertexts.iter().map(error_bound).fold(0.0, f64::max);
            check_within(&numbers, condition, margin)?;
        }
        let (side, ciphers) = match array.left().is_empty() {
            true => (Side::Right, array.right()),
            false => (Side::Left, array.left()),
        };
        let numbers = self.opened(array.packing(), side, ciphers)?;
        if array.packing().layout() != ArrayLayout::Coefficients {
            let most = |cipher: &Ciphertext| cipher.expected().largest() + error_bound(cipher);
            let most = ciphers.iter().map(most).fold(0.0, f64::max);
            if !numbers.iter().all(|number| number.abs() <= most) {
                let expected = format!("±{}, their magnitude", array.magnitude());
                let what = "decrypted numbers";
                return Err(ciphervec_he_secret::Error::Outside { what, expected }.into());
            }
        }
        Ok(finished(array, numbers))
    }

    /// The numbers of ciphertexts that lie so.
    fn opened(
        &self,
        packing: &ArrayPacking,
        side: Side,
        ciphers: &[Ciphertext],
    ) -> Result<Vec<f64>> {
        let coefficients = packing.layout() == ArrayLayout::Coefficients;
        let found = ciphers.par_iter().map(|cipher| {
            let plain = self.secret.decrypt(cipher)?;
            Ok(if coefficients { plain.decode_coefficients() } else { plain.decode() })
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok(collect(packing, side, &found, self.server.params().degree()))
    }
}

/// Refuses to take `other` for what a computation gives of which `array` is an instance.
fn check_alike(array: &EncryptedArray, other: &EncryptedArray) -> Result<()> {
    let shape = |array: &EncryptedArray| {
        let one = |packing: &ArrayPacking, ciphertexts: usize| {
            let (rows, dimension) = (packing.rows(), packing.dimension());
            let layout = packing.layout().as_str();
            format!("{rows} × {dimension} ({layout}) in {ciphertexts} ciphertexts")
        };
        let conditions = array.origin().conditions.iter().map(|condition| {
            let Condition { packing, ciphertexts, low, high } = &**condition;
            format!("; {} in [{low}, {high}]", one(packing, ciphertexts.len()))
        });
        one(array.packing(), array.left().len()) + &conditions.collect::<String>()
    };
    let same = array.packing() == other.packing()
        && array.post_processing() == other.post_processing()
        && shape(array) == shape(other);
    if same {
        return Ok(());
    }
    Err(Error::CkksSimilarity {
        operation: "publish",
        detail: format!(
            "the array is not what the expected computation gives: {} expected, got {}",
            shape(array),
            shape(other)
        ),
    })
}

impl Client {
    /// How many of the key's uses publishing an array takes, all else being in order: counted in a
    /// ledger before [`Self::publish`], they are used up even if the process ends in between.
    ///
    /// # Errors
    /// Those of [`Self::publish`] but [`ciphervec_he_secret::Error::Published`].
    pub fn uses_of(
        &self,
        array: &EncryptedArray,
        expected: &EncryptedArray,
        policy: PublishPolicy,
    ) -> Result<u64> {
        self.check_published(array, expected)?;
        let all = expected.origin().conditions.iter();
        let all = all.map(|condition| (&condition.packing, condition.ciphertexts.as_slice()));
        let mut uses = 0;
        for (packing, ciphertexts) in all.chain([(expected.packing(), expected.left())]) {
            for cipher in ciphertexts {
                let count = published_slots(packing);
                self.secret.flood_deviation(&cipher.expected(), count, policy)?;
                uses += 1;
            }
        }
        Ok(uses)
    }

    /// What the key has published so far.
    pub fn published(&self) -> Budget {
        self.secret.published()
    }

    /// Takes over what a ledger has counted; see [`ciphervec_he_secret::ckks::SecretKey::count_published`].
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Range`] for another policy than before.
    pub fn count_published(&self, policy: PublishPolicy, used: u64) -> Result<()> {
        Ok(self.secret.count_published(policy, used)?)
    }

    /// Refuses an array that is not what the `expected` one is an instance of, or an expectation
    /// that is somebody's word.
    fn check_published(&self, array: &EncryptedArray, expected: &EncryptedArray) -> Result<()> {
        expect_key(self.server.key_id(), array.key_id())?;
        expect_key(self.server.key_id(), expected.key_id())?;
        let refuse = |detail: &str| {
            Err(Error::CkksSimilarity { operation: "publish", detail: detail.to_owned() })
        };
        if array.packing().layout() == ArrayLayout::Coefficients {
            return refuse(
                "results in layout slots or single expected, got coefficients; decrypt is for the \
                 key owner alone",
            );
        }
        if expected.origin().claimed {
            return refuse(
                "what an array that was read says of its own noise is not believed: compute the \
                 same here, of arrays of the same shape, magnitude and key that you encrypt \
                 yourself, and give that as expected=. Do so only for a result of whoever you \
                 trust to have computed just that: of an array that somebody made up the noise \
                 hides nothing",
            );
        }
        check_alike(expected, array)?;
        let pairs = array.origin().conditions.iter().zip(&expected.origin().conditions);
        let pairs =
            pairs.map(|(one, like)| (one.ciphertexts.as_slice(), like.ciphertexts.as_slice()));
        for (ciphers, like) in pairs.chain([(array.left(), expected.left())]) {
            for (cipher, like) in ciphers.iter().zip(like) {
                like.expected().check_instance(&cipher.expected())?;
            }
        }
        Ok(())
    }

    /// The numbers of an array, flooded with noise and rounded, for others to see. The noise is
    /// that for the `expected` computation: an array that was computed here from the start, `array`
    /// itself or another one of the same operations.
    ///
    /// Every ciphertext counts as one of the `policy.uses` results that the key ever publishes, and
    /// so does every one that tells whether numbers lie in an interval that was stated: that, too,
    /// is looked at under a flood. Save the owner again afterwards.
    ///
    /// # Errors
    /// [`ciphervec_he_secret::Error::Published`] when they are used up; [`ciphervec_he_secret::Error::Range`]
    /// where the noise would drown the numbers; [`ciphervec_he_secret::Error::Outside`] for numbers beyond
    /// their magnitude or interval, or near its ends; [`Error::CkksSimilarity`] in layout
    /// `coefficients`, whose other coefficients a flood over slots does not cover, and for an
    /// `expected` array that was read.
    pub fn publish(
        &self,
        array: &EncryptedArray,
        expected: &EncryptedArray,
        policy: PublishPolicy,
    ) -> Result<Vec<f64>> {
        self.check_published(array, expected)?;
        let conditions = array.origin().conditions.iter().zip(&expected.origin().conditions);
        for (condition, like) in conditions {
            let ciphers = [&*condition.ciphertexts, &*like.ciphertexts];
            let (numbers, deviation) = self.flooded(&like.packing, ciphers, policy)?;
            let margin = policy.reach() * deviation;
            check_within(&numbers, like, -margin)?;
        }
        let ciphers = [array.left(), expected.left()];
        let (numbers, _) = self.flooded(expected.packing(), ciphers, policy)?;
        Ok(finished(array, numbers))
    }

    /// The numbers of ciphertexts that lie so, flooded, and the largest deviation of the floods.
    fn flooded(
        &self,
        packing: &ArrayPacking,
        [ciphers, expected]: [&[Ciphertext]; 2],
        policy: PublishPolicy,
    ) -> Result<(Vec<f64>, f64)> {
        let (count, mut deviation) = (published_slots(packing), 0.0f64);
        let mut found: Vec<Vec<f64>> = Vec::with_capacity(ciphers.len());
        // In order, so that a key whose uses run out has published the first results and no others.
        for (cipher, expected) in ciphers.iter().zip(expected) {
            let published = self.secret.publish(cipher, &expected.expected(), count, policy)?;
            deviation = deviation.max(published.deviation);
            found.push(published.values.into_iter().map(|value| value.re).collect());
        }
        let degree = self.server.params().degree();
        Ok((collect(packing, Side::Left, &found, degree), deviation))
    }
}

/// The slots of each ciphertext that publishing shows.
fn published_slots(packing: &ArrayPacking) -> usize {
    let last = packing.capacity().min(packing.rows()) - 1;
    packing.place(last)
        + if packing.layout() == ArrayLayout::Slots { packing.dimension() } else { 1 }
}

/// Refuses numbers beyond the interval, widened by so much on both sides.
fn check_within(numbers: &[f64], condition: &Condition, margin: f64) -> Result<()> {
    let (low, high) = (condition.low - margin, condition.high + margin);
    if numbers.iter().all(|number| (low..=high).contains(number)) {
        return Ok(());
    }
    let what = "squared lengths or distances, of which an encrypted root was taken,";
    Err(ciphervec_he_secret::Error::Outside { what, expected: condition.interval() }.into())
}

/// What a number of a slot is off at most.
fn error_bound(cipher: &Ciphertext) -> f64 {
    cipher.noise().bound / cipher.scale()
}

/// What is left to do for the owner.
fn finished(array: &EncryptedArray, mut numbers: Vec<f64>) -> Vec<f64> {
    if array.post_processing() == PostProcessing::Root {
        // The error of a distance near 0 may have left a square below it.
        numbers.iter_mut().for_each(|number| *number = number.max(0.0).sqrt());
    }
    numbers
}

/// Rows encrypted with the public key.
///
/// # Errors
/// As [`Client::encrypt`].
pub fn encrypt_for(
    public: &PublicKey,
    rows: &PlainRows<'_>,
    options: &EncryptOptions,
) -> Result<EncryptedArray> {
    encrypt(public.params(), rows, options, |plain| Ok((None, public.encrypt(plain)?)))
}

fn encrypt(
    params: &Arc<Params>,
    rows: &PlainRows<'_>,
    options: &EncryptOptions,
    seal: impl Fn(&Plaintext) -> Result<(Option<[u8; 32]>, Ciphertext)> + Sync,
) -> Result<EncryptedArray> {
    let ring = (params.degree(), params.max_slots());
    let shape = (rows.rows(), rows.dimension());
    let packing =
        ArrayPacking::new(options.layout, options.spread, shape, ring)?.batched(rows.is_batch());
    let scaled = if options.normalize { rows.normalized()? } else { Vec::new() };
    let unit =
        if options.normalize { Some(PlainRows::new(&scaled, shape.0, shape.1)?) } else { None };
    let rows = unit.as_ref().unwrap_or(rows);
    let magnitude = if options.normalize { Some(1.0) } else { options.magnitude };
    if let Some(limit) = magnitude {
        rows.expect_within(limit)?;
    }
    let coefficients = options.layout == ArrayLayout::Coefficients;
    let encoding = Encoding {
        level: options.level,
        magnitude: magnitude.filter(|_| !coefficients),
        ..Encoding::default()
    };
    // On average over slots a polynomial is as large as its coefficients are long.
    let together = packing.capacity().min(shape.0) as f64;
    let length = match (options.normalize, magnitude) {
        (true, _) => Some(together.sqrt()),
        (false, Some(limit)) => Some(limit * (together * shape.1 as f64).sqrt()),
        (false, None) => None,
    };
    let side = |side| {
        let one = |index| {
            let plain = rows.encode(params, &packing, side, index, &encoding)?;
            let (seed, cipher) = seal(&plain)?;
            Ok(match length.filter(|_| coefficients) {
                Some(length) => (seed, cipher.with_magnitude(length)?),
                None => (seed, cipher),
            })
        };
        let sealed = (0..packing.ciphertexts()).into_par_iter().map(one);
        Ok::<_, Error>(sealed.collect::<Result<Vec<_>>>()?.into_iter().unzip())
    };
    let none = || (Vec::new(), Vec::new());
    let (mut seeds, left): (Vec<_>, _) = match !coefficients || options.role.has_left() {
        true => side(Side::Left)?,
        false => none(),
    };
    let (more, right) = match coefficients && options.role.has_right() {
        true => side(Side::Right)?,
        false => none(),
    };
    seeds.extend(more);
    let seeds = seeds.into_iter().flatten().collect();
    let array = EncryptedArray::from_parts(packing, [left, right], seeds);
    Ok(array.of_unit_length(options.normalize))
}
