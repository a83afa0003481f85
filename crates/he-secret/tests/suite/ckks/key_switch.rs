//! Key switching against its definition: ciphertexts are decrypted by schoolbook products with the
//! ternary secret, modulo every prime, and what a switch adds must be one small integer polynomial
//! modulo all of them.

use super::support::{Owner, RINGS, numbers, spec};
use ciphervec_arith::Modulus;
use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::ckks::{Ciphertext, KeyPlan, Params, Ring, SecretKey};

/// The secret of a seed, as `docs/ckks.md` says it is expanded.
fn secret(seed: &[u8; 32], degree: usize) -> Vec<i8> {
    let mut ternary = vec![0; degree];
    Stream::new(seed, 0).ternary(&mut ternary);
    ternary
}

/// a s by the definition of either ring: in the second one basis element j > 0 is X^j + X^-j.
fn product(ring: Ring, a: &[u64], s: &[i8], m: &Modulus) -> Vec<u64> {
    let n = a.len() as i64;
    let mut out = vec![0; a.len()];
    let mut put = |exponent: i64, value: u64| {
        let (order, sign) = match ring {
            // X^N = −1.
            Ring::Standard => (n, exponent.div_euclid(n) % 2 != 0),
            // X^2N = −1; only exponents below N are kept, the others are their mirror images.
            _ => (2 * n, exponent.div_euclid(2 * n) % 2 != 0),
        };
        let at = exponent.rem_euclid(order) as usize;
        if let Some(out) = out.get_mut(at) {
            *out = m.add(*out, if sign { m.neg(value) } else { value });
        }
    };
    for (j, &s) in s.iter().enumerate().filter(|(_, s)| **s != 0) {
        for (i, &a) in a.iter().enumerate() {
            let value = if s < 0 { m.neg(a) } else { a };
            let (i, j) = (i as i64, j as i64);
            put(i + j, value);
            if ring != Ring::Standard {
                // (X^i + X^-i)(X^j + X^-j), each mirrored only if it is not its own mirror image.
                if i > 0 {
                    put(j - i, value);
                }
                if j > 0 {
                    put(i - j, value);
                }
                if i > 0 && j > 0 {
                    put(-i - j, value);
                }
            }
        }
    }
    out
}

/// c_0 + c_1 s + c_2 s² modulo q_`index`.
fn decrypt(ciphertext: &Ciphertext, s: &[i8], index: usize) -> Vec<u64> {
    let params = ciphertext.params();
    let m = params.prime(index);
    let parts = ciphertext.parts().iter().rev();
    let mut limbs = parts.map(|part| part.clone().into_coefficients().limb(index).to_vec());
    let highest = limbs.next().unwrap();
    limbs.fold(highest, |sum, limb| {
        let product = product(params.ring(), &sum, s, m);
        product.iter().zip(&limb).map(|(a, b)| m.add(*a, *b)).collect()
    })
}

/// The largest coefficient of a − b, which must be one and the same integer modulo all primes.
fn difference(a: &Ciphertext, b: &Ciphertext, s: &[i8], turn: impl Fn(&[u64]) -> Vec<u64>) -> i64 {
    let params = a.params();
    let differences = (0..=a.level()).map(|index| {
        let m = params.prime(index);
        let (a, b) = (decrypt(a, s, index), turn(&decrypt(b, s, index)));
        a.iter().zip(&b).map(|(a, b)| m.to_centered(m.sub(*a, *b))).collect::<Vec<_>>()
    });
    let all: Vec<_> = differences.collect();
    assert!(all.iter().all(|limb| *limb == all[0]), "the difference is no small polynomial");
    all[0].iter().map(|value| value.abs()).max().unwrap()
}

#[test]
fn a_relinearised_product_decrypts_to_what_the_product_does() {
    for ring in RINGS {
        for digits in [1, 2, 3] {
            let params = Params::insecure_new(spec(ring, 2, digits)).unwrap();
            let seed = [3; 32];
            let key = SecretKey::from_seed(&params, &seed);
            let s = secret(&seed, params.degree());
            let owner = Owner { params, key };
            let evaluator = owner.evaluator(&KeyPlan::new().relinearise());
            let x = numbers(&owner.params, owner.params.max_slots(), 1);
            for level in 1..=2 {
                let a = owner.encrypt(&x, level);
                let product = evaluator.multiply(&a, &a).unwrap();
                let switched = evaluator.relinearise(&product).unwrap();
                let added = difference(&switched, &product, &s, <[u64]>::to_vec);
                // P is at least as wide as a digit: a few hundred, where the message has 2^80.
                assert!((1..1 << 12).contains(&added), "{added}");
            }
        }
    }
}

#[test]
fn a_rotated_ciphertext_decrypts_to_the_automorphic_image() {
    let params = Params::insecure_new(spec(Ring::Standard, 2, 2)).unwrap();
    let seed = [3; 32];
    let owner = Owner { key: SecretKey::from_seed(&params, &seed), params };
    let s = secret(&seed, owner.params.degree());
    let evaluator = owner.evaluator(&KeyPlan::new().rotations([1, 7]).conjugate());
    let a = owner.encrypt(&numbers(&owner.params, owner.params.max_slots(), 1), 2);
    let order = 2 * owner.params.degree() as u64;
    let images = [
        (evaluator.rotate(&a, 1).unwrap(), 5),
        (evaluator.rotate(&a, 7).unwrap(), 5u64.pow(7) % order),
        (evaluator.conjugate(&a).unwrap(), order - 1),
    ];
    for (image, galois) in images {
        let turn = |poly: &[u64]| {
            // Signs are the same modulo every prime, so any modulus above all residues serves; they
            // are centred after.
            let mut out = vec![0u64; poly.len()];
            for (i, &x) in poly.iter().enumerate() {
                let exponent = (i as u64 * galois % order) as usize;
                let at = exponent % poly.len();
                out[at] = if exponent < poly.len() { x } else { x.wrapping_neg() };
            }
            out
        };
        let params = image.params();
        let all: Vec<Vec<i64>> = (0..=image.level())
            .map(|index| {
                let m = params.prime(index);
                let expected = turn(&decrypt(&a, &s, index));
                let actual = decrypt(&image, &s, index);
                let signed = expected.iter().map(|&x| m.from_i64(x as i64));
                actual.iter().zip(signed).map(|(a, b)| m.to_centered(m.sub(*a, b))).collect()
            })
            .collect();
        assert!(all.iter().all(|limb| *limb == all[0]));
        let largest = all[0].iter().map(|value| value.abs()).max().unwrap();
        assert!((1..1 << 12).contains(&largest), "{largest}");
    }
}
