//! What bounds the memory that a guest can make the host hold.

use std::cell::Cell;
use std::rc::Rc;

use rustix::io::Errno;

use crate::Result;

/// An amount (of bytes, of nodes) of which only so much may be in use.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Cell<u64>,
    used: Cell<u64>,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Rc<Budget> {
        Rc::new(Budget {
            limit: Cell::new(limit),
            used: Cell::new(0),
        })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// Allows `amount` more than what is in use now.
    pub(crate) fn allow_more(&self, amount: u64) {
        self.limit.set(self.used.get().saturating_add(amount));
    }

    pub(crate) fn free(&self) -> u64 {
        self.limit.get().saturating_sub(self.used.get())
    }
}

/// A share of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Rc<Budget>,
    amount: u64,
}

impl Charge {
    pub(crate) fn empty(budget: &Rc<Budget>) -> Charge {
        Charge {
            budget: Rc::clone(budget),
            amount: 0,
        }
    }

    /// Takes `amount`; ENOSPC if the budget has less.
    pub(crate) fn of(budget: &Rc<Budget>, amount: u64) -> Result<Charge> {
        let mut charge = Charge::empty(budget);
        charge.grow(amount)?;
        Ok(charge)
    }

    pub(crate) fn grow(&mut self, amount: u64) -> Result<()> {
        if amount > self.budget.free() {
            return Err(Errno::NOSPC);
        }
        self.budget.used.set(self.budget.used.get() + amount);
        self.amount += amount;
        Ok(())
    }

    pub(crate) fn shrink(&mut self, amount: u64) {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        self.budget
            .used
            .set(self.budget.used.get().saturating_sub(amount));
    }

    pub(crate) fn budget(&self) -> &Rc<Budget> {
        &self.budget
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(self.amount);
    }
}
