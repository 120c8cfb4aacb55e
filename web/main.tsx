import './styles/main.css';
import { render } from 'preact';
import { App } from './frame/app.tsx';
import { loadLanguage, readDocumentLanguage } from './lib/language.tsx';
import { findPage, loadPage } from './lib/pages.ts';
import { takeServedContent } from './lib/served-content.ts';

/** The files of the first page are already on their way: the server names them in the HTML. */
async function start(): Promise<void> {
  const language = readDocumentLanguage();
  const [first] = await Promise.all([
    loadPage(findPage(location.pathname).name, language),
    loadLanguage(language),
  ]);
  const root = document.querySelector('#app')!;
  takeServedContent(root);
  render(<App first={first} />, root);
}

await start();
