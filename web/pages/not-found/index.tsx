import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './not-found.css';

export default function NotFoundPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page not-found">
      <p class="not-found-code" aria-hidden="true">
        404
      </p>
      <h1>{t('title')}</h1>
      <p class="soft">{t('text')}</p>
      <SiteLink href="/" class="button primary medium">
        {t('home')}
      </SiteLink>
    </div>
  );
}
