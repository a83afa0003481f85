//! Keys of every additively homomorphic scheme behind two enums, and code that runs on any of them.

use std::sync::Arc;

use ciphervec_he_secret::additive::{Decrypt, SecurityStatement};
use ciphervec_he_secret::scheme::{
    AdditiveScheme, KeyOptions, SchemePublicKey, SchemeSecretKey, SecretScheme,
};
use ciphervec_he_secret::wire::{self, Kind, Scheme};
use ciphervec_he_secret::{Error, damgard_jurik, elgamal, okamoto_uchiyama, paillier};
use ciphervec_owner::Scheme as Named;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zeroize::Zeroizing;

use crate::errors::{InvalidInput, Raise};

/// Makes the two kinds of keys and all that treats them one by one, from the list of schemes.
macro_rules! schemes {
    ($d:tt $($name:ident: $scheme:ty),+ $(,)?) => {
        /// A public key of any scheme, by itself or inside its secret key.
        #[derive(Clone)]
        pub enum Public {
            $($name(Arc<<$scheme as AdditiveScheme>::PublicKey>),)+
            Of(Arc<Secret>),
        }

        /// A secret key of any scheme.
        pub enum Secret {
            $($name(<$scheme as SecretScheme>::SecretKey),)+
        }

        /// Calls the same code on the key inside, whatever its scheme.
        macro_rules! on_secret {
            ($d secret:expr, $d key:ident => $d body:expr) => {
                match $d secret {
                    $($crate::scheme::Secret::$name($d key) => $d body,)+
                }
            };
        }

        /// The same for public keys.
        macro_rules! on_public {
            ($d public:expr, $d key:ident => $d body:expr) => {
                match $d public {
                    $($crate::scheme::Public::$name(inner) => {
                        let $d key = &**inner;
                        $d body
                    })+
                    $crate::scheme::Public::Of(secret) => {
                        $crate::scheme::on_secret!(&**secret, inner => {
                            let $d key = ciphervec_he_secret::additive::Decrypt::public(inner);
                            $d body
                        })
                    }
                }
            };
        }

        pub(crate) use {on_public, on_secret};

        impl Public {
            pub fn read(data: &[u8], insecure: bool) -> Result<Self, Error> {
                let (header, _) = wire::open(Kind::PublicKey, data)?;
                $(if header.scheme == <$scheme as AdditiveScheme>::WIRE {
                    let key = SchemePublicKey::read(data, insecure)?;
                    return Ok(Public::$name(Arc::new(key)));
                })+
                Err(no_scheme("a public key", header.scheme))
            }
        }

        impl Secret {
            pub fn read(data: &[u8], insecure: bool) -> Result<Self, Error> {
                let (header, _) = wire::open(Kind::SecretKey, data)?;
                $(if header.scheme == <$scheme as AdditiveScheme>::WIRE {
                    return SchemeSecretKey::read(data, insecure).map(Secret::$name);
                })+
                Err(no_scheme("a secret key", header.scheme))
            }

            fn generate_under(scheme: Scheme, options: &KeyOptions<'_>) -> Result<Self, Error> {
                $(if scheme == <$scheme as AdditiveScheme>::WIRE {
                    return <$scheme>::generate_with(options).map(Secret::$name);
                })+
                Err(no_scheme("a key pair", scheme))
            }
        }
    };
}

schemes! { $
    Paillier: paillier::Paillier,
    DamgardJurik: damgard_jurik::DamgardJurik,
    OkamotoUchiyama: okamoto_uchiyama::OkamotoUchiyama,
    ElGamal: elgamal::ElGamal,
}

/// The names of the schemes of an index that `counts` takes.
pub fn names<'py>(
    module: &Bound<'py, PyModule>,
    counts: impl Fn(Named) -> bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let named: Vec<_> = Named::ALL.into_iter().filter(|named| counts(*named)).collect();
    PyTuple::new(module.py(), named.into_iter().map(Named::as_str))
}

/// What Python calls the scheme of a frame.
pub fn scheme_name(scheme: Scheme) -> &'static str {
    let named = Named::ALL.into_iter().find(|named| named.wire() == Some(scheme));
    named.map_or("another scheme", Named::as_str)
}

impl Public {
    pub fn scheme(&self) -> Scheme {
        on_public!(self, key => SchemePublicKey::scheme(key))
    }

    pub fn bits(&self) -> u32 {
        on_public!(self, key => SchemePublicKey::bits(key))
    }

    /// Damgård–Jurik's s, 1 for Paillier.
    pub fn s(&self) -> Option<u32> {
        on_public!(self, key => SchemePublicKey::power(key))
    }

    pub fn security(&self) -> SecurityStatement {
        on_public!(self, key => SchemePublicKey::security(key))
    }
}

pub fn no_scheme(what: &'static str, scheme: Scheme) -> Error {
    Error::Malformed {
        what,
        detail: format!("an additively homomorphic scheme expected, {} came", scheme.as_str()),
    }
}

impl Secret {
    pub fn generate(scheme: &str, options: &KeyOptions<'_>) -> PyResult<Self> {
        let all = || Named::ALL.into_iter().filter(|named| named.is_additive());
        match all().find(|named| named.as_str() == scheme).and_then(Named::wire) {
            Some(scheme) => Self::generate_under(scheme, options).map_err(Raise::raise),
            None => {
                let known: Vec<_> = all().map(Named::as_str).collect();
                let known = known.join(", ");
                Err(InvalidInput::new_err(format!("the schemes are {known}; got {scheme:?}")))
            }
        }
    }

    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        on_secret!(self, key => SchemeSecretKey::to_bytes(key))
    }

    /// The key id as a key file shows it.
    pub fn label(&self) -> [u8; 16] {
        let mut label = [0; 16];
        label[..8].copy_from_slice(&on_secret!(self, key => key_id(key.public())).0);
        label
    }
}

fn key_id(key: &impl SchemePublicKey) -> wire::KeyId {
    key.key_id()
}
