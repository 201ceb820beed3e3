//! The terminal's settings: a program that dies in raw mode must not leave the shell in it.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The settings of the terminal at standard input, to be put back.
pub struct Saved(Option<Termios>);

impl Saved {
    /// Saves the settings, if standard input is a terminal.
    pub fn save() -> Saved {
        Saved(tcgetattr(std::io::stdin()).ok())
    }

    /// Puts the settings back.
    pub fn restore(&self) {
        if let Some(settings) = &self.0 {
            // A terminal that went away needs no settings.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, settings);
        }
    }
}
