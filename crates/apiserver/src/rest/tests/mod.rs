//! Requests and their answers.

mod deletion;
mod discovery;
mod hostile;
mod kinds;
mod lists;
mod pods;
mod writes;
