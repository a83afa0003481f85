//! A public or secret key of any additively homomorphic scheme, and code that runs on whichever it is.

use std::sync::Arc;

use ciphervec_he::additive::{Decrypt, Evaluate, SecurityStatement};
use ciphervec_he::wire::{self, Kind, Scheme};
use ciphervec_he::{Error, damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::{InvalidInput, Raise};

/// The length of a key on ristretto255, whose field has 255 bits.
const ELGAMAL_BITS: u32 = 255;

/// A public key of any scheme, by itself or inside its secret key.
#[derive(Clone)]
pub enum Public {
    DamgardJurik(Arc<damgard_jurik::PublicKey>),
    OkamotoUchiyama(Arc<okamoto_uchiyama::PublicKey>),
    ElGamal(elgamal::PublicKey),
    Of(Arc<Secret>),
}

/// A secret key of any scheme. Paillier is Damgård–Jurik with s = 1.
pub enum Secret {
    DamgardJurik(damgard_jurik::SecretKey),
    OkamotoUchiyama(okamoto_uchiyama::SecretKey),
    ElGamal(elgamal::SecretKey),
}

/// Calls the same code on the key inside, whatever its scheme.
macro_rules! on_secret {
    ($secret:expr, $key:ident => $body:expr) => {
        match $secret {
            $crate::scheme::Secret::DamgardJurik($key) => $body,
            $crate::scheme::Secret::OkamotoUchiyama($key) => $body,
            $crate::scheme::Secret::ElGamal($key) => $body,
        }
    };
}
pub(crate) use on_secret;

/// The same for public keys.
macro_rules! on_public {
    ($public:expr, $key:ident => $body:expr) => {
        match $public {
            $crate::scheme::Public::DamgardJurik(inner) => {
                let $key = &**inner;
                $body
            }
            $crate::scheme::Public::OkamotoUchiyama(inner) => {
                let $key = &**inner;
                $body
            }
            $crate::scheme::Public::ElGamal($key) => $body,
            $crate::scheme::Public::Of(secret) => {
                $crate::scheme::on_secret!(&**secret, inner => {
                    let $key = ciphervec_he::additive::Decrypt::public(inner);
                    $body
                })
            }
        }
    };
}
pub(crate) use on_public;

/// What Python calls the scheme of a frame.
pub fn scheme_name(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Paillier => "paillier",
        Scheme::DamgardJurik => "damgard-jurik",
        Scheme::OkamotoUchiyama => "okamoto-uchiyama",
        Scheme::ElGamal => "elgamal",
        _ => "another scheme",
    }
}

impl Public {
    pub fn read(data: &[u8], insecure: bool) -> Result<Self, Error> {
        let (header, _) = wire::open(Kind::PublicKey, data)?;
        Ok(match header.scheme {
            Scheme::Paillier | Scheme::DamgardJurik => {
                let read = if insecure {
                    damgard_jurik::PublicKey::insecure_from_bytes
                } else {
                    damgard_jurik::PublicKey::from_bytes
                };
                Public::DamgardJurik(Arc::new(read(data)?))
            }
            Scheme::OkamotoUchiyama => {
                let read = if insecure {
                    okamoto_uchiyama::PublicKey::insecure_from_bytes
                } else {
                    okamoto_uchiyama::PublicKey::from_bytes
                };
                Public::OkamotoUchiyama(Arc::new(read(data)?))
            }
            Scheme::ElGamal => Public::ElGamal(elgamal::PublicKey::from_bytes(data)?),
            other => return Err(no_scheme("a public key", other)),
        })
    }

    pub fn scheme(&self) -> Scheme {
        match self {
            Public::DamgardJurik(key) => key.scheme(),
            Public::OkamotoUchiyama(_) => Scheme::OkamotoUchiyama,
            Public::ElGamal(_) => Scheme::ElGamal,
            Public::Of(secret) => match &**secret {
                Secret::DamgardJurik(key) => key.public().scheme(),
                Secret::OkamotoUchiyama(_) => Scheme::OkamotoUchiyama,
                Secret::ElGamal(_) => Scheme::ElGamal,
            },
        }
    }

    pub fn bits(&self) -> u32 {
        match self {
            Public::DamgardJurik(key) => key.bits(),
            Public::OkamotoUchiyama(key) => key.bits(),
            Public::ElGamal(_) => ELGAMAL_BITS,
            Public::Of(secret) => match &**secret {
                Secret::DamgardJurik(key) => key.public().bits(),
                Secret::OkamotoUchiyama(key) => key.public().bits(),
                Secret::ElGamal(_) => ELGAMAL_BITS,
            },
        }
    }

    pub fn s(&self) -> Option<u32> {
        match self {
            Public::DamgardJurik(key) => Some(key.s()),
            Public::Of(secret) => match &**secret {
                Secret::DamgardJurik(key) => Some(key.public().s()),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn security(&self) -> SecurityStatement {
        on_public!(self, key => key.security())
    }
}

pub fn no_scheme(what: &'static str, scheme: Scheme) -> Error {
    Error::Malformed {
        what,
        detail: format!("an additively homomorphic scheme expected, {} came", scheme.as_str()),
    }
}

impl Secret {
    pub fn generate(
        scheme: &str,
        bits: u32,
        s: u32,
        noise: &str,
        insecure: bool,
    ) -> PyResult<Self> {
        let made = match scheme {
            "paillier" => {
                use paillier::Noise;
                let noise = match noise {
                    "short" => Noise::ShortExponent,
                    "uniform" => Noise::Uniform,
                    "subgroup" => Noise::Subgroup,
                    _ => return Err(no_noise("'short', 'uniform' or 'subgroup'", noise)),
                };
                let generate =
                    if insecure { paillier::insecure_generate } else { paillier::generate_with };
                generate(bits, noise).map(Secret::DamgardJurik)
            }
            "damgard-jurik" if noise != "short" => return Err(no_noise("'short'", noise)),
            "damgard-jurik" => {
                let generate = if insecure {
                    damgard_jurik::insecure_generate
                } else {
                    damgard_jurik::generate
                };
                generate(bits, s).map(Secret::DamgardJurik)
            }
            "okamoto-uchiyama" => {
                use okamoto_uchiyama::Noise;
                let noise = match noise {
                    "full" => Noise::Full,
                    "short" => Noise::Short,
                    _ => return Err(no_noise("'full' or 'short'", noise)),
                };
                let generate = if insecure {
                    okamoto_uchiyama::insecure_generate
                } else {
                    okamoto_uchiyama::generate_with
                };
                generate(bits, noise).map(Secret::OkamotoUchiyama)
            }
            "elgamal" => elgamal::SecretKey::generate().map(Secret::ElGamal),
            _ => {
                let known = "paillier, damgard-jurik, okamoto-uchiyama, elgamal";
                return Err(InvalidInput::new_err(format!(
                    "the schemes are {known}; got {scheme:?}"
                )));
            }
        };
        made.map_err(Raise::raise)
    }

    pub fn read(data: &[u8], insecure: bool) -> Result<Self, Error> {
        let (header, _) = wire::open(Kind::SecretKey, data)?;
        Ok(match header.scheme {
            Scheme::Paillier | Scheme::DamgardJurik => Secret::DamgardJurik(if insecure {
                damgard_jurik::SecretKey::insecure_from_bytes(data)?
            } else {
                damgard_jurik::SecretKey::from_bytes(data)?
            }),
            Scheme::OkamotoUchiyama => Secret::OkamotoUchiyama(if insecure {
                okamoto_uchiyama::SecretKey::insecure_from_bytes(data)?
            } else {
                okamoto_uchiyama::SecretKey::from_bytes(data)?
            }),
            Scheme::ElGamal => Secret::ElGamal(elgamal::SecretKey::from_bytes(data)?),
            other => return Err(no_scheme("a secret key", other)),
        })
    }

    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        on_secret!(self, key => key.to_bytes())
    }

    /// The key id as a key file shows it.
    pub fn label(&self) -> [u8; 16] {
        let mut label = [0; 16];
        label[..8].copy_from_slice(&on_secret!(self, key => key.public().key_id()).0);
        label
    }
}

fn no_noise(expected: &str, noise: &str) -> PyErr {
    InvalidInput::new_err(format!("noise must be {expected}; got {noise:?}"))
}
