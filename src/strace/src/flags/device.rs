//! Names that terminal and other device calls take.

use super::{Choice, choice, flags};

/// Where two drivers share a number, strace prints both names, in the order of its table.
pub(crate) const IOCTL: &Choice = &Choice {
    names: &[
        (libc::TCGETS, "TCGETS"),
        (libc::TCSETS, "SNDCTL_TMR_START or TCSETS"),
        (libc::TCSETSW, "SNDCTL_TMR_STOP or TCSETSW"),
        (libc::TCSETSF, "SNDCTL_TMR_CONTINUE or TCSETSF"),
        (libc::TCSBRK, "TCSBRK"),
        (libc::TCXONC, "TCXONC"),
        (libc::TCFLSH, "TCFLSH"),
        (libc::TIOCEXCL, "TIOCEXCL"),
        (libc::TIOCNXCL, "TIOCNXCL"),
        (libc::TIOCSCTTY, "TIOCSCTTY"),
        (libc::TIOCGPGRP, "TIOCGPGRP"),
        (libc::TIOCSPGRP, "TIOCSPGRP"),
        (libc::TIOCOUTQ, "TIOCOUTQ"),
        (libc::TIOCGWINSZ, "TIOCGWINSZ"),
        (libc::TIOCSWINSZ, "TIOCSWINSZ"),
        (libc::TIOCNOTTY, "TIOCNOTTY"),
        (0x5429, "TIOCGSID"),
        (0x8004_5430, "TIOCGPTN"),
        (0x4004_5431, "TIOCSPTLCK"),
        (0x8004_5439, "TIOCGPTLCK"),
        (0x5441, "TIOCGPTPEER"),
        (libc::FIONREAD, "FIONREAD"),
        (libc::FIONBIO, "FIONBIO"),
        (0x5450, "FIONCLEX"),
        (0x5451, "FIOCLEX"),
        (0x5452, "FIOASYNC"),
        (0x5460, "FIOQSIZE"),
        (0x4004_9409, "BTRFS_IOC_CLONE or FICLONE"),
    ],
    unknown: "",
};

flags!(INPUT: "???", {
    IGNBRK, BRKINT, IGNPAR, PARMRK, INPCK, ISTRIP, INLCR, IGNCR, ICRNL, IUCLC = 0x200, IXON, IXANY, IXOFF, IMAXBEL,
    IUTF8,
});
flags!(OUTPUT: "???",
    [0x100 => NL0, NL1], [0x600 => CR0, CR1, CR2, CR3], [0x1800 => TAB0, TAB1, TAB2, TAB3], [0x2000 => BS0, BS1],
    [0x4000 => VT0, VT1], [0x8000 => FF0, FF1],
    { OPOST, OLCUC, ONLCR, OCRNL, ONOCR, ONLRET, OFILL, OFDEL });
flags!(CONTROL: "???",
    [0x100f => B0, B50, B75, B110, B134, B150, B200, B300, B600, B1200, B1800, B2400, B4800, B9600, B19200, B38400,
        B57600, B115200, B230400, B460800, B921600],
    [0x30 => CS5, CS6, CS7, CS8],
    { CSTOPB, CREAD, PARENB, PARODD, HUPCL, CLOCAL, CMSPAR, CRTSCTS });
flags!(LOCAL: "???", {
    ISIG, ICANON, XCASE = 0x4, ECHO, ECHOE, ECHOK, ECHONL, NOFLSH, TOSTOP, IEXTEN, ECHOCTL, ECHOPRT, ECHOKE, FLUSHO,
    PENDIN, EXTPROC,
});
choice!(FLUSH: "TC???", { TCIFLUSH, TCOFLUSH, TCIOFLUSH });
choice!(FLOW: "TC???", { TCOOFF, TCOON, TCIOFF, TCION });
