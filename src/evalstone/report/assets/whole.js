/* The claims of a sample that is shown in full. */
for (const panel of document.querySelectorAll("main > .panel")) markClaims(panel);
