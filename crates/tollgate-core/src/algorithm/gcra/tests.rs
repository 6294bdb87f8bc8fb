use super::*;
use crate::Rate;
