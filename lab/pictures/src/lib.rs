//! Pictures in self-contained pages: what a page of the lab shows besides its tables. Nothing here
//! knows what was measured.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plot`] | curves and dots as SVG |
//! | [`raster`] | pictures of coloured pixels, within a page |
//! | [`pagetypes`] | page-type maps as in 2007, each page a pixel: PNG, and an HTML player |
//! | [`markup`] | escaping and filling of HTML pages |
//! | [`policy`] | the content security policy of such a page: nothing is fetched, only its own scripts run |

#![forbid(unsafe_code)]

pub mod markup;
pub mod pagetypes;
pub mod plot;
pub mod policy;
pub mod raster;
