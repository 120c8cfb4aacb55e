import { useCommon } from '../lib/language.tsx';
import { config } from '../lib/page-facts.ts';

/** The links and the line of the operator. */
export function Footer() {
  const common = useCommon();
  const { name, terms_url: terms, privacy_url: privacy, support_email: email, footer_text: text } = config;
  return (
    <footer class="footer">
      <div class="footer-inner">
        <p>{text ?? name}</p>
        <ul>
          {terms !== null && (
            <li>
              <a href={terms}>{common('terms')}</a>
            </li>
          )}
          {privacy !== null && (
            <li>
              <a href={privacy}>{common('privacy')}</a>
            </li>
          )}
          {email !== null && (
            <li>
              <a href={`mailto:${email}`}>{common('support')}</a>
            </li>
          )}
        </ul>
      </div>
    </footer>
  );
}
