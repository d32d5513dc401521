//! `anemone doctor`: says what is wrong on the way to a server.

use anemone_lab::doctor::{Unreached, Way, examine};

use super::runtime;
use crate::args;
use crate::output::print;

/// Something on the way to the server is set wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("no Anemone server answers at this URL")]
    NoServer,
    #[error("the server has gone: it answered at first, and does not any more")]
    Gone,
    #[error("the way to the server is refused")]
    Refused,
    #[error("the certificate of the server is not trusted")]
    Untrusted,
    #[error("the URL of the server is {0}")]
    Below(String),
    #[error("on the way to the server is 1 fault")]
    Fault,
    #[error("on the way to the server are {0} faults")]
    Faults(usize),
}

pub(crate) fn run(args: &args::Doctor) -> anyhow::Result<()> {
    let way = args.reach.apply(&args.url, Way::new(&args.url)?)?;
    let tell = |lines: &[String]| {
        if !args.json {
            // Who reads no longer may still want the exit status.
            let _ = print(lines);
        }
    };
    let diagnosis = runtime()?.block_on(examine(&way, args.begin_max, args.wait, tell));
    if args.json {
        print([serde_json::to_string(&diagnosis)?])?;
    } else if diagnosis.faults() == 0 {
        print([conclusion(diagnosis.unknowns(), diagnosis.remarks())])?;
    }
    if let Some(why) = diagnosis.unreached() {
        return Err(Unfit::from(why).into());
    }
    match diagnosis.faults() {
        0 => Ok(()),
        1 => Err(Unfit::Fault.into()),
        faults => Err(Unfit::Faults(faults).into()),
    }
}

/// The last line where no fault was found.
fn conclusion(unknowns: usize, remarks: usize) -> String {
    match unknowns {
        0 if remarks > 0 => "Nothing is wrong, but a setting lets events come sooner.".to_owned(),
        0 => "Nothing is wrong.".to_owned(),
        1 => "Nothing wrong was found, but 1 examination has no answer.".to_owned(),
        many => format!("Nothing wrong was found, but {many} examinations have no answer."),
    }
}

impl From<&Unreached> for Unfit {
    fn from(why: &Unreached) -> Self {
        match why {
            Unreached::Refused => Self::Refused,
            Unreached::Untrusted => Self::Untrusted,
            Unreached::Below(url) => Self::Below(url.clone()),
            Unreached::Gone => Self::Gone,
            _ => Self::NoServer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_answer_is_not_called_right() {
        assert_eq!(conclusion(0, 0), "Nothing is wrong.");
        assert_eq!(conclusion(0, 2), "Nothing is wrong, but a setting lets events come sooner.");
        assert_eq!(conclusion(1, 0), "Nothing wrong was found, but 1 examination has no answer.");
        assert_eq!(conclusion(2, 2), "Nothing wrong was found, but 2 examinations have no answer.");
    }
}
