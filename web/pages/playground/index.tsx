import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './playground.css';

export default function PlaygroundPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page playground">
      <h1>{t('title')}</h1>
      <p>{t('text')}</p>
      <p>
        <SiteLink href="/models">{t('toModels')}</SiteLink>
      </p>
    </div>
  );
}
