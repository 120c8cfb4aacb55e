import type { Language } from '../../lib/messages.ts';

/**
 * Cities by their zones, the one that names the zone first: Russian, English and what else people type. Browsers name
 * zones, and few cities, in Russian. Zones that were renamed are there under both names.
 */
const citiesByZone: Readonly<Record<string, string>> = {
  'Europe/Kaliningrad': 'Калининград/Kaliningrad',
  'Europe/Moscow':
    'Москва/Moscow; Санкт-Петербург/Saint Petersburg/St. Petersburg/Питер; Нижний Новгород/Nizhny Novgorod; Казань/Kazan; ' +
    'Ростов-на-Дону/Rostov-on-Don; Краснодар/Krasnodar; Воронеж/Voronezh; Сочи/Sochi; Ярославль/Yaroslavl; Тула/Tula; ' +
    'Рязань/Ryazan; Пенза/Penza; Липецк/Lipetsk; Тверь/Tver; Иваново/Ivanovo; Брянск/Bryansk; Белгород/Belgorod; ' +
    'Курск/Kursk; Калуга/Kaluga; Владимир/Vladimir; Смоленск/Smolensk; Орёл/Oryol; Тамбов/Tambov; Кострома/Kostroma; ' +
    'Вологда/Vologda; Череповец/Cherepovets; Архангельск/Arkhangelsk; Мурманск/Murmansk; Петрозаводск/Petrozavodsk; ' +
    'Великий Новгород/Veliky Novgorod; Псков/Pskov; Сыктывкар/Syktyvkar; Чебоксары/Cheboksary; Йошкар-Ола/Yoshkar-Ola; ' +
    'Саранск/Saransk; Набережные Челны/Naberezhnye Chelny; Иннополис/Innopolis; Ставрополь/Stavropol; ' +
    'Махачкала/Makhachkala; Грозный/Grozny; Владикавказ/Vladikavkaz; Нальчик/Nalchik; Магас/Magas; Черкесск/Cherkessk; ' +
    'Майкоп/Maykop; Элиста/Elista; Новороссийск/Novorossiysk; Нарьян-Мар/Naryan-Mar',
  'Europe/Simferopol': 'Симферополь/Simferopol; Севастополь/Sevastopol; Ялта/Yalta; Керчь/Kerch',
  'Europe/Kirov': 'Киров/Kirov',
  'Europe/Volgograd': 'Волгоград/Volgograd; Волжский/Volzhsky',
  'Europe/Astrakhan': 'Астрахань/Astrakhan',
  'Europe/Saratov': 'Саратов/Saratov; Энгельс/Engels',
  'Europe/Ulyanovsk': 'Ульяновск/Ulyanovsk',
  'Europe/Samara': 'Самара/Samara; Тольятти/Tolyatti; Ижевск/Izhevsk',
  'Asia/Yekaterinburg':
    'Екатеринбург/Yekaterinburg/Ekaterinburg; Челябинск/Chelyabinsk; Уфа/Ufa; Пермь/Perm; Тюмень/Tyumen; ' +
    'Оренбург/Orenburg; Курган/Kurgan; Магнитогорск/Magnitogorsk; Нижний Тагил/Nizhny Tagil; Сургут/Surgut; ' +
    'Нижневартовск/Nizhnevartovsk; Ханты-Мансийск/Khanty-Mansiysk; Салехард/Salekhard; Новый Уренгой/Novy Urengoy; ' +
    'Стерлитамак/Sterlitamak',
  'Asia/Omsk': 'Омск/Omsk',
  'Asia/Novosibirsk': 'Новосибирск/Novosibirsk',
  'Asia/Barnaul': 'Барнаул/Barnaul; Горно-Алтайск/Gorno-Altaysk; Бийск/Biysk',
  'Asia/Tomsk': 'Томск/Tomsk',
  'Asia/Novokuznetsk': 'Новокузнецк/Novokuznetsk; Кемерово/Kemerovo',
  'Asia/Krasnoyarsk': 'Красноярск/Krasnoyarsk; Абакан/Abakan; Кызыл/Kyzyl; Норильск/Norilsk',
  'Asia/Irkutsk': 'Иркутск/Irkutsk; Улан-Удэ/Ulan-Ude; Братск/Bratsk; Ангарск/Angarsk',
  'Asia/Chita': 'Чита/Chita',
  'Asia/Yakutsk': 'Якутск/Yakutsk; Благовещенск/Blagoveshchensk; Мирный/Mirny',
  'Asia/Khandyga': 'Хандыга/Khandyga',
  'Asia/Vladivostok':
    'Владивосток/Vladivostok; Хабаровск/Khabarovsk; Уссурийск/Ussuriysk; Находка/Nakhodka; Биробиджан/Birobidzhan; ' +
    'Комсомольск-на-Амуре/Komsomolsk-on-Amur',
  'Asia/Ust-Nera': 'Усть-Нера/Ust-Nera',
  'Asia/Magadan': 'Магадан/Magadan',
  'Asia/Sakhalin': 'Южно-Сахалинск/Yuzhno-Sakhalinsk/Сахалин/Sakhalin',
  'Asia/Srednekolymsk': 'Среднеколымск/Srednekolymsk',
  'Asia/Kamchatka': 'Петропавловск-Камчатский/Petropavlovsk-Kamchatsky/Камчатка/Kamchatka',
  'Asia/Anadyr': 'Анадырь/Anadyr',
  'Europe/Minsk': 'Минск/Minsk; Гомель/Gomel; Гродно/Grodno; Брест/Brest; Витебск/Vitebsk; Могилёв/Mogilev',
  'Europe/Kiev': 'Киев/Kyiv/Kiev; Харьков/Kharkiv; Одесса/Odesa; Днепр/Dnipro; Львов/Lviv',
  'Europe/Kyiv': 'Киев/Kyiv/Kiev; Харьков/Kharkiv; Одесса/Odesa; Днепр/Dnipro; Львов/Lviv',
  'Europe/Chisinau': 'Кишинёв/Chisinau; Тирасполь/Tiraspol',
  'Asia/Tbilisi': 'Тбилиси/Tbilisi; Батуми/Batumi',
  'Asia/Yerevan': 'Ереван/Yerevan; Гюмри/Gyumri',
  'Asia/Baku': 'Баку/Baku',
  'Asia/Almaty': 'Алматы/Almaty/Алма-Ата; Астана/Astana; Шымкент/Shymkent; Караганда/Karaganda',
  'Asia/Aqtobe': 'Актобе/Aqtobe',
  'Asia/Aqtau': 'Актау/Aqtau',
  'Asia/Atyrau': 'Атырау/Atyrau',
  'Asia/Oral': 'Уральск/Oral',
  'Asia/Qostanay': 'Костанай/Qostanay',
  'Asia/Qyzylorda': 'Кызылорда/Qyzylorda',
  'Asia/Bishkek': 'Бишкек/Bishkek; Ош/Osh',
  'Asia/Dushanbe': 'Душанбе/Dushanbe',
  'Asia/Tashkent': 'Ташкент/Tashkent',
  'Asia/Samarkand': 'Самарканд/Samarkand',
  'Asia/Ashgabat': 'Ашхабад/Ashgabat',
  'Europe/Riga': 'Рига/Riga',
  'Europe/Vilnius': 'Вильнюс/Vilnius',
  'Europe/Tallinn': 'Таллин/Tallinn',
  'Europe/Berlin': 'Берлин/Berlin; Мюнхен/Munich; Гамбург/Hamburg',
  'Europe/London': 'Лондон/London',
  'Europe/Paris': 'Париж/Paris',
  'Europe/Madrid': 'Мадрид/Madrid; Барселона/Barcelona',
  'Europe/Rome': 'Рим/Rome; Милан/Milan',
  'Europe/Prague': 'Прага/Prague',
  'Europe/Warsaw': 'Варшава/Warsaw',
  'Europe/Belgrade': 'Белград/Belgrade',
  'Europe/Helsinki': 'Хельсинки/Helsinki',
  'Europe/Istanbul': 'Стамбул/Istanbul; Анкара/Ankara; Анталья/Antalya',
  'Asia/Nicosia': 'Никосия/Nicosia; Лимасол/Limassol',
  'Asia/Jerusalem': 'Иерусалим/Jerusalem; Тель-Авив/Tel Aviv; Хайфа/Haifa',
  'Asia/Dubai': 'Дубай/Dubai; Абу-Даби/Abu Dhabi',
  'Asia/Bangkok': 'Бангкок/Bangkok; Пхукет/Phuket',
  'Asia/Shanghai': 'Шанхай/Shanghai; Пекин/Beijing; Шэньчжэнь/Shenzhen',
  'Asia/Hong_Kong': 'Гонконг/Hong Kong',
  'Asia/Singapore': 'Сингапур/Singapore',
  'Asia/Tokyo': 'Токио/Tokyo',
  'Asia/Seoul': 'Сеул/Seoul',
  'Asia/Calcutta': 'Калькутта/Kolkata; Дели/Delhi; Мумбаи/Mumbai; Гоа/Goa',
  'Asia/Kolkata': 'Калькутта/Kolkata; Дели/Delhi; Мумбаи/Mumbai; Гоа/Goa',
  'America/New_York': 'Нью-Йорк/New York',
  'America/Los_Angeles': 'Лос-Анджелес/Los Angeles; Сан-Франциско/San Francisco',
};

export interface ZoneCities {
  /** The city that names the zone, in the language. */
  readonly main: string;
  /** All that people may type. */
  readonly names: readonly string[];
}

/** Returns the cities of a zone that are known; null for other zones. */
export function findCities(zone: string, language: Language): ZoneCities | null {
  const list = Object.hasOwn(citiesByZone, zone) ? citiesByZone[zone] : undefined;
  if (list === undefined) return null;
  const cities = list.split('; ').map((names) => names.split('/'));
  return { main: cities[0]![language === 'ru' ? 0 : 1]!, names: cities.flat() };
}
