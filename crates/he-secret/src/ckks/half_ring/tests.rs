//! Half ring: numbers come back as coefficients of the whole ring, as near as is said.

use super::super::{
    Ciphertext, CompactCiphertexts, Entropy, HalfRing, Params, ParamsSpec, Ring, RingSwitchKey,
    SecretKey,
};
use crate::error::{Error, Result};
use crate::params::{self, Security};
use crate::wire::HEADER_LEN;
use std::sync::Arc;

const LOG_DEGREE: u32 = 11;

fn params() -> Result<Arc<Params>> {
    Params::insecure_new(ParamsSpec {
        log_degree: LOG_DEGREE,
        ring: Ring::Standard,
        base_bits: 50,
        scale_bits: 40,
        levels: 1,
        special_primes: 1,
        special_bits: 50,
        digits: 2,
        security: Security::Classical128,
    })
}

/// Indices of a table of 256 rows, as fractions of a turn.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|k| ((k * 2_654_435_761 + seed * 97) % 256) as f64 / 256.0).collect()
}

/// How far `actual` is from `expected`, modulo 1.
fn off(actual: f64, expected: f64) -> f64 {
    let error = actual - expected;
    error - error.round()
}

/// What is in the first half of the coefficients, and the root mean square of what they are off by.
fn error_of(ring: &HalfRing, coefficients: &[f64], expected: &[f64]) -> f64 {
    let half = ring.messages() / 2;
    let square = |k: usize| off(coefficients[k], expected[k / 2 + k % 2 * half]).powi(2);
    let squares: Vec<f64> = (0..ring.messages()).map(square).collect();
    assert!(squares.iter().all(|&square| square < (7.0 * ring.deviation()).powi(2)));
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

#[test]
fn numbers_are_the_first_coefficients_of_the_whole_ring() {
    let params = params().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    for bits in [12, 21, 24, 50] {
        let ring = Arc::new(HalfRing::new(&params, bits).unwrap());
        let key = secret.half_ring_key(&ring).unwrap();
        let lists = [0, 1, 2].map(|seed| numbers(ring.messages(), seed));
        let switch = key.switch_key().unwrap();
        let query = key.encrypt(&lists.each_ref().map(Vec::as_slice)).unwrap();
        let bytes = query.to_bytes(&ring);
        assert_eq!(bytes.len(), ring.query_bytes(3));
        assert_eq!(ring.bytes(), ring.messages() * bits as usize / 8);
        let query = CompactCiphertexts::from_bytes(&ring, &bytes).unwrap();
        for (index, list) in lists.iter().enumerate() {
            let x = ring.switch(&query, index, &switch).unwrap();
            assert_eq!((x.level(), x.key_id()), (0, secret.key_id()));
            let opened = secret.decrypt(&x).unwrap().decode_coefficients();
            let error = error_of(&ring, &opened, list);
            let ratio = error / ring.deviation();
            assert!((0.85..1.15).contains(&ratio), "{bits} bits: off by {ratio} of what is said");
        }
    }
}

/// What coefficients-to-slots leaves in slot j is w_k = m_k + i m_(k + N/2) for k with the bits of j
/// in reverse.
#[test]
fn numbers_come_to_the_slots_that_are_said() {
    let params = params().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let ring = Arc::new(HalfRing::new(&params, 30).unwrap());
    let (key, count) = (secret.half_ring_key(&ring).unwrap(), ring.messages());
    let lists = [5, 6].map(|seed| numbers(count, seed));
    let query = key.encrypt(&[&lists[0], &lists[1]]).unwrap();
    let switch = key.switch_key().unwrap();
    let opened = |x: Ciphertext| secret.decrypt(&x).unwrap().decode_coefficients();
    let alone = opened(ring.switch(&query, 0, &switch).unwrap());
    let pair = opened(ring.switch_pair(&query, 0, &switch).unwrap());
    for slot in 0..count {
        let k = (0..count.ilog2()).fold(0, |k, bit| 2 * k + (slot >> bit & 1));
        assert!(off(alone[k], lists[0][ring.place(slot)]).abs() < 1e-6, "slot {slot}");
        let (which, place) = ring.place_in_pair(slot);
        assert!(off(pair[k], lists[which][place]).abs() < 1e-6, "slot {slot}");
        let imaginary = lists[which][place + count / 2];
        assert!(off(pair[k + count], imaginary).abs() < 1e-6, "slot {slot}");
    }
}

/// One mask under one secret twice would show the difference of two messages: no two ciphertexts
/// have one, of a query, of several, or of several keys that were given one seed.
#[test]
fn no_mask_is_used_twice() {
    let params = params().unwrap();
    let ring = Arc::new(HalfRing::new(&params, 50).unwrap());
    let secrets = [0, 1].map(|at| SecretKey::from_seed(&params, &[at; 32]));
    let list = numbers(ring.messages(), 0);
    let mut seen = Vec::new();
    for secret in &secrets {
        let key = secret.half_ring_key(&ring).unwrap();
        for _ in 0..20 {
            let query = key.encrypt(&[&list, &list, &list]).unwrap();
            for index in 0..query.len() {
                seen.push(query.constant(&ring, index).unwrap());
            }
            let seed = query.to_bytes(&ring)[HEADER_LEN..][..16].try_into().unwrap();
            let [one, other] = [0, 1].map(|index| ring.mask(query.key_id(), &seed, index));
            assert_ne!(one, other);
        }
    }
    let [one, other] = secrets.each_ref().map(|secret| ring.mask(secret.key_id(), &[7; 16], 0));
    assert_ne!(one, other);
    // Where a mask is the same, so is b but for the noise: some sixteen bits are.
    let m = *ring.table().modulus();
    for (at, one) in seen.iter().enumerate() {
        for other in &seen[..at] {
            let near = one.iter().zip(other).filter(|&(&a, &b)| m.sub(a, b) < 1 << 16).count();
            assert!(near < 4, "{near} coefficients are alike");
        }
    }
}

/// Whoever has no key sees uniform words, whatever the message.
#[test]
fn what_is_sent_looks_alike_for_all_messages() {
    let params = params().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let ring = Arc::new(HalfRing::new(&params, 16).unwrap());
    let key = secret.half_ring_key(&ring).unwrap();
    for list in [vec![0.0; ring.messages()], numbers(ring.messages(), 1)] {
        let query = key.encrypt(&[&list[..]; 16]).unwrap();
        let mut counts = [0usize; 256];
        // Behind the seed, the bits of a coefficient and how many ciphertexts there are.
        let bytes = query.to_bytes(&ring);
        let packed = &bytes[HEADER_LEN + 21..];
        packed.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let expected = packed.len() as f64 / 256.0;
        let statistic: f64 =
            counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        // 255 degrees of freedom: eight standard deviations.
        assert!(statistic < 255.0 + 8.0 * 22.6, "{statistic}");
    }
}

#[test]
fn other_rings_keys_and_bytes_are_refused() {
    let params = params().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let ring = Arc::new(HalfRing::new(&params, 24).unwrap());
    let key = secret.half_ring_key(&ring).unwrap();
    assert!(HalfRing::new(&params, 7).is_err() && HalfRing::new(&params, 51).is_err());
    let wide = vec![0.0; ring.messages() + 1];
    assert!(key.encrypt(&[&wide]).is_err() && key.encrypt(&[&[f64::NAN]]).is_err());
    let query = key.encrypt(&[&[0.25]]).unwrap();
    let bytes = query.to_bytes(&ring);
    let switch = key.switch_key().unwrap();
    assert!(ring.switch(&query, 1, &switch).is_err());
    let finer = HalfRing::new(&params, 25).unwrap();
    assert!(CompactCiphertexts::from_bytes(&finer, &bytes).is_err());
    assert!(finer.switch(&query, 0, &switch).is_err());
    for length in [0, 63, 64, 84, bytes.len() - 1] {
        assert!(CompactCiphertexts::from_bytes(&ring, &bytes[..length]).is_err());
    }
    let other = SecretKey::generate(&params).unwrap();
    let theirs = other.half_ring_key(&ring).unwrap().switch_key().unwrap();
    assert!(matches!(ring.switch(&query, 0, &theirs), Err(Error::WrongKey { .. })));
    let again = RingSwitchKey::from_bytes(&ring, &switch.to_bytes()).unwrap();
    assert_eq!(switch.to_bytes().len(), RingSwitchKey::bytes(&params));
    let [one, two] = [&switch, &again].map(|key| ring.switch(&query, 0, key).unwrap());
    assert_eq!(one, two);
    let foreign = Params::insecure_new(ParamsSpec { scale_bits: 41, ..*params.spec() }).unwrap();
    assert!(
        RingSwitchKey::from_bytes(&HalfRing::new(&foreign, 24).unwrap(), &switch.to_bytes())
            .is_err()
    );
    assert!(SecretKey::generate(&foreign).unwrap().half_ring_key(&ring).is_err());
}

/// Half the degree takes half the modulus: even the smallest ring there is has room for q_0.
#[test]
fn the_security_table_is_asked_at_half_the_degree() {
    let spec = ParamsSpec {
        log_degree: 12,
        ring: Ring::Standard,
        base_bits: 50,
        scale_bits: 20,
        levels: 0,
        special_primes: 1,
        special_bits: 50,
        digits: 1,
        security: Security::Classical128,
    };
    let ring = HalfRing::new(&Params::new(spec).unwrap(), 20).unwrap();
    let security = ring.security();
    assert_eq!((security.bits, security.post_quantum), (128, true));
    assert_eq!(security.lattice, params::estimate(2048, 50));
    assert!(params::check(1024, 50, Security::Classical128).is_err());
}

/// Bytes of a fixed seed, which no release may make otherwise.
#[test]
fn bytes_are_frozen() {
    let params = params().unwrap();
    let secret = SecretKey::from_seed(&params, &[3; 32]);
    let ring = Arc::new(HalfRing::new(&params, 21).unwrap());
    let key = secret.half_ring_key(&ring).unwrap();
    let mut entropy = Entropy::insecure_fixed(&[4; 32]);
    let list = numbers(ring.messages(), 9);
    let query = key.encrypt_with(&[&list, &list[..3]], &mut entropy).unwrap();
    let switch = key.switch_key_with(&mut entropy).unwrap();
    let found = [query.to_bytes(&ring), switch.to_bytes()]
        .map(|bytes| blake3::hash(&bytes).to_hex()[..16].to_owned());
    assert_eq!(found, ["e94591191271686f", "a36064b47ad61f40"]);
}
