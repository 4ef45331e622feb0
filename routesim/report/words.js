// Words and numbers as people read them, and elements that hold them as plain text.
"use strict";
const Words = (() => {
  const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

  function make(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  const digits = (value, most = 4) => value.toLocaleString("en", {maximumSignificantDigits: most});
  // A number of an axis with all its digits; twelve leave out what binary fractions add.
  const exact = (value) => digits(value, 12);
  const whole = (value) => value.toLocaleString("en");
  const percent = (share) => (share > 0 && share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`);
  const metres = (value) => (value >= 1000 ? `${(value / 1000).toFixed(value >= 9950 ? 0 : 1)} km` : `${Math.round(value)} m`);
  const seconds = (value) => `${value >= 100 ? whole(Math.round(value)) : digits(value, 2)} s`;
  const clockTime = (value) => {
    const all = Math.round(value), pad = (n) => String(n).padStart(2, "0");
    return `${Math.floor(all / 3600)}:${pad(Math.floor(all / 60) % 60)}${all % 60 ? `:${pad(all % 60)}` : ""}`;
  };

  return {known, make, digits, exact, whole, percent, metres, seconds, clockTime};
})();
