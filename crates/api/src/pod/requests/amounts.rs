//! Arithmetic on exact amounts by resource name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::node::read_amount;
use crate::problem::{FieldPath, Problem};
use crate::quantity::Quantity;

/// Amounts by resource name. A name that is missing is not the same as zero:
/// defaults stand in for the first only.
pub(super) type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// A list of resources as the API has it.
pub(super) type ApiList = BTreeMap<String, ApiQuantity>;

/// Reads a list that stands at `at`. What cannot be read is reported and left
/// out.
pub(super) fn read_list<'a>(
    list: Option<&'a ApiList>,
    problems: &mut Vec<Problem>,
    at: impl Fn() -> FieldPath,
) -> Amounts<'a> {
    let mut amounts = Amounts::new();
    for (name, quantity) in list.into_iter().flatten() {
        // Paths are text, and almost no amount needs one.
        match Quantity::parse(&quantity.0) {
            Ok(amount) if !amount.is_negative() => drop(amounts.insert(name, amount)),
            _ => problems.extend(read_amount(&quantity.0, &at().key(name)).err()),
        }
    }
    amounts
}

/// Adds every amount of `more`.
pub(super) fn add<'a>(amounts: &mut Amounts<'a>, more: &Amounts<'a>) {
    for (name, amount) in more {
        let sum = amounts.entry(name).or_default();
        *sum = sum.plus(*amount);
    }
}

/// Raises every amount to the one in `other` where that is larger.
pub(super) fn raise<'a>(amounts: &mut Amounts<'a>, other: &Amounts<'a>) {
    for (name, amount) in other {
        let largest = amounts.entry(name).or_insert(*amount);
        *largest = (*largest).max(*amount);
    }
}

/// `amounts` without `less`, nothing below zero.
pub(super) fn without<'a>(amounts: &Amounts<'a>, less: &Amounts<'_>) -> Amounts<'a> {
    let rest = |name: &str, amount: Quantity| match less.get(name) {
        Some(less) => amount.minus(*less).max(Quantity::ZERO),
        None => amount,
    };
    amounts.iter().map(|(name, amount)| (*name, rest(name, *amount))).collect()
}
