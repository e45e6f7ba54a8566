//! Requests and their answers.

mod broken;
mod deletion;
mod discovery;
mod hostile;
mod kinds;
mod lists;
mod pods;
mod reviews;
mod tokens;
mod writes;
