import { html, render } from 'htm/preact';

render(html`<main><h1>Tollgate</h1></main>`, document.body);
