//! Serving of health checks, metrics and other pages over TLS, with delegated
//! authentication and authorisation.
#![warn(missing_docs)]
